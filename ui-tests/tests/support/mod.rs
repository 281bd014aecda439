//! Small packages that are compiled by a test, each a workspace of its own.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// A package of `fixtures/`, copied to where it can be compiled.
pub struct Fixture {
    directory: PathBuf,
    target: PathBuf,
}

/// What one command came to.
pub struct Output {
    /// Whether it ended well.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Fixture {
    /// Copies `fixtures/{name}` and the workspace's lock file to `target/fixtures/{name}`: as deep in the tree, so
    /// that relative paths mean the same there.
    ///
    /// # Panics
    /// Where a file cannot be copied.
    pub fn new(name: &str) -> Self {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = package.parent().expect("a workspace");
        let target = root.join("target/fixtures");
        let directory = target.join(name);
        copy(&package.join("fixtures").join(name), &directory).expect("a copy of the fixture");
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))
            .expect("a copy of the lock file");
        Self {
            directory,
            target: target.join("target"),
        }
    }

    /// Runs cargo in the package, without the network.
    ///
    /// # Panics
    /// Where cargo cannot be started.
    pub fn cargo(&self, arguments: &[&str]) -> Output {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(arguments)
            .arg("--offline")
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("RUSTFLAGS")
            .output()
            .expect("cargo starts");
        Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
