//! A broker process and a plain client for tests: starts the binary on a port
//! of the kernel's choice, waits for its ready line, and ends it.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use millstream::wire::{ApiKey, Message, Reader, Request, RequestHeader, ResponseHeader, Writer};

/// Longest wait for an answer; a test that reaches it has failed.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What the ready line says before the address.
const READY: &str = "millstream ready: kafka ";

/// A running broker. Dropping it kills the process.
pub struct Broker {
    child: Option<Child>,
    address: SocketAddr,
    data_dir: PathBuf,
    flags: Vec<String>,
    open_files: Option<u32>,
    _dir: tempfile::TempDir,
}

impl Broker {
    /// Starts a broker on an empty directory.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a broker on an empty directory with more flags.
    pub fn start_with(flags: &[&str]) -> Self {
        Self::launch(None, flags, None)
    }

    /// As `start_with`, with this limit of open files.
    pub fn start_within(open_files: Option<u32>, flags: &[&str]) -> Self {
        Self::launch(open_files, flags, None)
    }

    /// Starts a broker on an empty directory with a bug (`model::planted`);
    /// `restart` is without.
    pub fn start_planted(bug: &'static str) -> Self {
        Self::launch(None, &[], Some(bug))
    }

    fn launch(open_files: Option<u32>, flags: &[&str], bug: Option<&'static str>) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the broker's data");
        let data_dir = dir.path().join("data");
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (child, address) = launch(&data_dir, &flags, open_files, bug);
        Self { child: Some(child), address, data_dir, flags, open_files, _dir: dir }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the broker runs").id()
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(log_path(&self.data_dir)).unwrap_or_default()
    }

    /// Asks it to stop (SIGTERM) and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the broker runs");
        let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        child.wait().expect("it can be waited for")
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the broker runs");
        child.wait().expect("it can be waited for")
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the broker runs");
        child.kill().expect("it runs");
        child.wait().expect("it can be waited for");
    }

    /// Starts it again on its directory when it has ended, at another address.
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "the broker runs");
        let (child, address) = launch(&self.data_dir, &self.flags, self.open_files, None);
        self.child = Some(child);
        self.address = address;
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- log of the broker at {}\n{}", self.address, self.log());
        }
    }
}

fn log_path(data_dir: &Path) -> PathBuf {
    data_dir.with_extension("log")
}

fn launch(
    data_dir: &Path,
    flags: &[String],
    open_files: Option<u32>,
    bug: Option<&str>,
) -> (Child, SocketAddr) {
    let limit = open_files.map_or(String::new(), |limit| format!("ulimit -n {limit} && "));
    let log = File::options().append(true).create(true).open(log_path(data_dir));
    let mut child = Command::new("sh")
        .args(["-c", &format!("{limit}exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--listen", "127.0.0.1:0", "--memory", "64MiB", "--data-dir"])
        .arg(data_dir)
        // Tests give records timestamps of any year.
        .args(["--set", "log.retention.ms=-1"])
        .args(flags)
        .envs(bug.map(|bug| ("MILLSTREAM_PLANTED_BUG", bug)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log.expect("a file for the broker's log"))
        .spawn()
        .expect("the broker's binary runs");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    stdout.read_line(&mut line).expect("its standard output can be read");
    let Some(address) = line.trim_end().strip_prefix(READY) else {
        let status = child.wait().expect("it can be waited for");
        let log = std::fs::read_to_string(log_path(data_dir)).unwrap_or_default();
        panic!("the broker is not ready ({status}), it says: {line}\n{log}");
    };
    (child, address.parse().expect("the ready line ends with an address"))
}

/// One connection that speaks through the codec of this package.
pub struct Client {
    stream: TcpStream,
    next_id: i32,
    name: String,
}

/// A whole frame: length, header and body.
pub fn frame(key: ApiKey, version: i16, id: i32, name: &str, body: &[u8]) -> Vec<u8> {
    let client_id = Some(name.into());
    let header = RequestHeader { key, version, correlation_id: id, client_id };
    let mut frame = vec![0; 4];
    header.write(&mut Writer::new(&mut frame)).expect("the header is short");
    frame.extend_from_slice(body);
    let length = i32::try_from(frame.len() - 4).expect("a test's frame is small");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the broker accepts connections");
        stream.set_nodelay(true).expect("it is a socket");
        stream.set_read_timeout(Some(ANSWER_MAX)).expect("it is a socket");
        Self { stream, next_id: 0, name: "test".into() }
    }

    /// With this client id.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sends bytes as they are; the broker may have closed meanwhile.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more will be sent.
    pub fn send_no_more(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Everything that still comes until the broker closes; fails when it does
    /// not.
    pub fn drain(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
            Err(e) => panic!("the broker does not close: {e}"),
        }
        bytes
    }

    /// A second handle of the same connection, to read while this one writes.
    pub fn handle(&self) -> Self {
        let stream = self.stream.try_clone().expect("it is a socket");
        Self { stream, next_id: self.next_id, name: self.name.clone() }
    }

    /// Sends a body, already encoded, and returns its correlation id.
    pub fn send_body(&mut self, key: ApiKey, version: i16, body: &[u8]) -> i32 {
        self.next_id += 1;
        let frame = frame(key, version, self.next_id, &self.name, body);
        self.stream.write_all(&frame).expect("the broker reads");
        self.next_id
    }

    /// The next frame without its length; `None` when the broker closed.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            Err(e) => panic!("no answer: {e}"),
        }
        let length = usize::try_from(i32::from_be_bytes(length)).expect("lengths are positive");
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).expect("the frame is whole");
        Some(frame)
    }

    /// Sends a body and returns the body of the answer.
    pub fn ask_body(&mut self, key: ApiKey, version: i16, body: &[u8]) -> Vec<u8> {
        let id = self.send_body(key, version, body);
        let frame = self.receive().expect("the broker answers");
        let mut reader = Reader::new(&frame);
        let header = ResponseHeader::read(&mut reader, key, version).expect("a response header");
        assert_eq!(header.correlation_id, id, "answers come in order");
        frame[ResponseHeader::size(key, version)..].to_vec()
    }

    /// Sends a request and returns the answer.
    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let body = request.encode(version).expect("the version has these fields");
        let answer = self.ask_body(R::KEY, version, &body);
        R::Response::decode(Reader::new(&answer), version)
            .unwrap_or_else(|e| panic!("{} version {version}: {e}: {answer:02x?}", R::NAME))
    }
}
