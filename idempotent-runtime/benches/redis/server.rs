//! A `redis-server` of the benchmark's own, which keeps nothing on disk.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends with the value.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// A server on a free port of this machine.
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        Self {
            child: spawn(port),
            port,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("a killed server ends");
    }

    /// Starts it again, empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.port);
    }

    /// Stops it from answering, while its sockets stay open.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(port: u16) -> Child {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server starts: install it, on Debian or Ubuntu with `apt-get install redis-server`");
    let start = Instant::now();
    while !answers(port) {
        assert!(
            matches!(child.try_wait(), Ok(None)) && start.elapsed() < PATIENCE,
            "redis-server does not answer on port {port}"
        );
        thread::sleep(Duration::from_millis(2));
    }
    child
}

fn answers(port: u16) -> bool {
    let ping = || {
        let mut server = TcpStream::connect(("127.0.0.1", port))?;
        server.set_read_timeout(Some(Duration::from_secs(1)))?;
        server.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        server.read_exact(&mut reply)?;
        Ok::<_, std::io::Error>(&reply == b"+PONG\r\n")
    };
    ping().unwrap_or(false)
}
