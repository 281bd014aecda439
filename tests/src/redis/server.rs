//! One `redis-server`, which tests kill, freeze and start again.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to start, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with the value. It writes nothing to disk unless it is told to.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    dir: TempDir,
    port: u16,
    sentinel: bool,
}

impl RedisServer {
    /// A server on a free port of this machine.
    ///
    /// # Panics
    ///
    /// If Redis is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with more lines in its configuration file, such as `maxmemory 5mb`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(config: &[&str]) -> Self {
        Self::launch(config, false)
    }

    pub(super) fn launch(config: &[&str], sentinel: bool) -> Self {
        // Another process may take the port between its choice and the server's start.
        for _ in 0..10 {
            let port = free_port();
            let dir = tempfile::tempdir().expect("a directory for the server");
            let mut lines = vec![
                format!("port {port}"),
                "bind 127.0.0.1".to_owned(),
                format!("dir {}", dir.path().display()),
                format!("logfile {}", dir.path().join("log").display()),
            ];
            if !sentinel {
                lines.push("save \"\"".to_owned());
            }
            lines.extend(config.iter().map(|&line| line.to_owned()));
            std::fs::write(dir.path().join("redis.conf"), lines.join("\n") + "\n")
                .expect("the server's configuration can be written");
            let mut server = Self {
                child: None,
                dir,
                port,
                sentinel,
            };
            if server.spawn() {
                return server;
            }
        }
        panic!("redis-server found no free port");
    }

    /// Starts the process; false if it ended again, for want of its port.
    fn spawn(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        command.arg(self.dir.path().join("redis.conf"));
        if self.sentinel {
            command.arg("--sentinel");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| missing(&error));
        let mut ended = None;
        until(
            &format!("redis-server answers on port {}", self.port),
            || {
                ended = child.try_wait().expect("a child of this process");
                ended.is_some() || answers(self.port)
            },
        );
        if let Some(status) = ended {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(
                log.contains("Address already in use"),
                "redis-server ended with {status}:\n{log}"
            );
            return false;
        }
        self.child = Some(child);
        true
    }

    /// The port it listens on, at 127.0.0.1. It stays the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:<port>`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Ends the process at once, as a crash does.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("a server that runs");
        child.kill().expect("the server can be killed");
        child.wait().expect("a killed server ends");
    }

    /// Starts the process again where it was, killing it first if it runs. What was on disk comes
    /// back; by default nothing was.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        let port = self.port;
        until(&format!("port {port} is free again"), || self.spawn());
    }

    /// Starts the process again without its data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart_empty(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        for entry in std::fs::read_dir(self.dir.path()).expect("the server's directory") {
            let entry = entry.expect("an entry of the server's directory");
            if entry.file_name() == "redis.conf" {
                continue;
            }
            let path = entry.path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
            removed.expect("the server's data can be removed");
        }
        self.restart();
    }

    /// Stops the process without ending it: connections stay open, nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets a frozen process go on, with what it was sent meanwhile.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("a server that runs");
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", child.id())])
            .status()
            .expect("a shell");
        assert!(status.success(), "kill -{signal} failed: {status}");
    }

    /// What `redis-cli` prints for a command, without the last line feed. An error of the server's
    /// is printed too.
    ///
    /// # Panics
    ///
    /// If `redis-cli` is not installed, or cannot connect.
    #[expect(
        clippy::must_use_candidate,
        reason = "many commands are sent for what they do"
    )]
    pub fn cli(&self, args: &[&str]) -> String {
        self.try_cli(args)
            .unwrap_or_else(|error| panic!("redis-cli {args:?}: {error}"))
    }

    /// The same of a server that may cut its clients, as one does that is demoted.
    pub(super) fn try_cli(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string()])
            .args(args)
            .output()
            .unwrap_or_else(|error| missing(&error));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut printed = text(&output.stdout);
        if !output.status.success() {
            return Err(printed + &text(&output.stderr));
        }
        if printed.ends_with('\n') {
            printed.pop();
        }
        Ok(printed)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A frozen process is killed too. The test has its result by now.
            if child.kill().is_ok() {
                child.wait().ok();
            }
        }
    }
}

fn missing(error: &std::io::Error) -> ! {
    assert!(error.kind() == ErrorKind::NotFound, "{error}");
    panic!("install redis-server, on Debian with `apt-get install redis-server`");
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("the free port").port()
}

/// Whether a server has loaded its data and answers, be it that one must log in.
fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        Ok::<_, std::io::Error>(reply)
    };
    ask().is_ok_and(|reply| reply == *b"+PONG\r\n" || reply == *b"-NOAUTH")
}

/// Asks until it is so.
#[expect(
    clippy::disallowed_methods,
    reason = "waits for other processes, which a paused clock does not move"
)]
pub(super) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
