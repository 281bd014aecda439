//! A server that answers as the test says, for what no real one does on demand.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

type Answer = dyn Fn(&[String]) -> Option<String> + Send + Sync;

/// Listens until the process ends.
pub(crate) struct Fake {
    port: u16,
}

impl Fake {
    /// Answers each command with what the test says, in RESP; otherwise as a master that is well.
    pub(crate) fn start(
        answer: impl Fn(&[String]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let answer: Arc<Answer> = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(&stream, &*answer));
            }
        });
        Self { port }
    }

    /// One whose `INFO server` has this line in it.
    pub(crate) fn of_version(line: &'static str) -> Self {
        Self::start(move |command| {
            let asked = command.join(" ").eq_ignore_ascii_case("info server");
            asked.then(|| bulk(&format!("# Server\r\n{line}\r\n")))
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

/// A string of RESP.
pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn serve(stream: &TcpStream, answer: &Answer) {
    let mut reader = BufReader::new(stream);
    while let Some(command) = read(&mut reader) {
        let reply = answer(&command).unwrap_or_else(|| well(&command));
        let mut writer = stream;
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Vec<String>> {
    let words = number(reader, '*')?;
    (0..words).map(|_| word(reader)).collect()
}

fn word(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let length = number(reader, '$')?;
    let mut word = vec![0; length + 2];
    reader.read_exact(&mut word).ok()?;
    word.truncate(length);
    Some(String::from_utf8_lossy(&word).into_owned())
}

fn number(reader: &mut BufReader<&TcpStream>, prefix: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(prefix)?.parse().ok()
}

fn well(command: &[String]) -> String {
    let words = command.iter().map(|word| word.to_uppercase());
    match &*words.take(2).collect::<Vec<_>>().join(" ") {
        "PING" => "+PONG\r\n".to_owned(),
        "ROLE" => format!("*3\r\n{}:0\r\n*0\r\n", bulk("master")),
        "CLIENT INFO" => bulk("id=1 addr=127.0.0.1:1"),
        "INFO SERVER" => bulk("redis_version:7.0.0\r\n"),
        "INFO MEMORY" => bulk("maxmemory_policy:noeviction\r\n"),
        _ => "+OK\r\n".to_owned(),
    }
}
