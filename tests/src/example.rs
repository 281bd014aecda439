//! The example programs, built and started as a user does.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::LazyLock,
    time::Duration,
};

use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;

/// The longest that anything is waited for that is bound to happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// The programs' files by their names; building them is cargo's to skip where they are up to date.
static BINARIES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--message-format", "json"])
        .args(["--package", "idempotent-runtime", "--features", "redis"])
        .args(["--example", "orders", "--example", "storm"])
        .current_dir(crate::source::workspace())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(built.status.success(), "the examples do not build");
    let messages = String::from_utf8(built.stdout).expect("messages in UTF-8");
    let executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).expect("a message in JSON");
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, message["executable"].as_str()?.to_owned()))
    });
    executables.collect()
});

/// Runs a program to its end.
///
/// # Panics
///
/// Where it cannot be built or started.
#[must_use]
pub fn run(program: &str, args: &[&str]) -> Output {
    Command::new(&BINARIES[program])
        .args(args)
        .output()
        .expect("the example starts")
}

/// The program `orders`, listening; killed when dropped.
#[derive(Debug)]
pub struct Shop {
    child: Child,
    stdout: BufReader<ChildStdout>,
    base: String,
    /// What calls it.
    pub client: Client,
}

impl Shop {
    /// Starts one on a free port.
    ///
    /// # Panics
    ///
    /// Where it cannot be built or started, or ends before it listens.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one on a free port with more arguments.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(args: &[&str]) -> Self {
        Self::launch(args, Stdio::inherit())
    }

    /// The same, with its log in a file.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start), or where the file cannot be made.
    #[must_use]
    pub fn logging(args: &[&str], log: &Path) -> Self {
        Self::launch(args, File::create(log).expect("a file for the log").into())
    }

    fn launch(args: &[&str], stderr: Stdio) -> Self {
        let mut child = Command::new(&BINARIES["orders"])
            .args(["--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the example starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a first line");
        let base = line
            .trim()
            .strip_prefix("Listening on ")
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        let client = Client::builder()
            .no_proxy()
            .timeout(PATIENCE)
            .build()
            .expect("a client");
        Self {
            child,
            stdout,
            base,
            client,
        }
    }

    /// `http://` and where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// A POST with an idempotency key.
    pub fn post(&self, path: &str, key: &str) -> RequestBuilder {
        self.client
            .post(format!("{}{path}", self.base))
            .header("Idempotency-Key", format!("\"{key}\""))
    }

    /// The answer to a GET, as text.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub async fn get(&self, path: &str) -> String {
        let request = self.client.get(format!("{}{path}", self.base));
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200, "GET {path}");
        response.text().await.expect("a body")
    }

    /// A list of rows.
    ///
    /// # Panics
    ///
    /// Where it is not one.
    pub async fn rows(&self, path: &str) -> Vec<Value> {
        serde_json::from_str(&self.get(path).await).expect("an array")
    }

    /// The value of a metric, by its name and labels as they are exported; 0 before it first moves.
    ///
    /// # Panics
    ///
    /// Where it is no number.
    pub async fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics").await;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().expect("a number"))
    }

    /// Returns once so many handlers run.
    ///
    /// # Panics
    ///
    /// Where that never happens.
    pub async fn until_in_flight(&self, running: u64) {
        let reached = async {
            while self.metric("idempotency_in_flight").await != running {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached)
            .await
            .unwrap_or_else(|_| panic!("never {running} in flight"));
    }

    /// Sends a signal by its name.
    ///
    /// # Panics
    ///
    /// Where it cannot be sent.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status()
            .expect("a shell");
        assert!(sent.success(), "SIG{name} was not sent");
    }

    /// Returns once the program has said that it stops.
    ///
    /// # Panics
    ///
    /// Where it ends before.
    pub fn until_stopping(&mut self) {
        let mut line = String::new();
        while !line.starts_with("Stopping:") {
            line.clear();
            let read = self.stdout.read_line(&mut line).expect("output in UTF-8");
            assert!(read > 0, "it ended without a word");
        }
    }

    /// Waits for the program's end: whether it succeeded, and what it printed since it listened.
    ///
    /// # Panics
    ///
    /// Where its output cannot be read.
    pub fn ended(&mut self) -> (bool, String) {
        let mut printed = String::new();
        self.stdout
            .read_to_string(&mut printed)
            .expect("output in UTF-8");
        let status = self.child.wait().expect("an exit status");
        (status.success(), printed)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // Fails where it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether a response came from a record.
#[must_use]
pub fn is_replay(response: &Response) -> bool {
    response.headers().contains_key("x-idempotent-replay")
}
