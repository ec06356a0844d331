//! How a broker starts and refuses to: flags, configuration, exit codes.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::Duration;

use millstream::wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource,
};

use super::admin::{create, topic};
use super::common::Broker;
use super::requests::{batch, produce};

/// Runs a broker that must not become ready.
fn refused(arguments: &[&str], code: i32) -> String {
    let directory = tempfile::tempdir().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path())
        .args(arguments)
        .output()
        .unwrap();
    judged(&ran, code)
}

fn judged(ran: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(code), "{text}");
    assert!(ran.stdout.is_empty(), "it said that it is ready");
    text
}

#[test]
fn flags_are_not_set_by_other_means_and_too_little_memory_has_a_remedy() {
    for (key, flag) in [
        ("log.dirs=/x", "--data-dir"),
        ("listeners=PLAINTEXT://:1", "--listen"),
        ("advertised.listeners=PLAINTEXT://h:1", "--advertise"),
        ("millstream.memory=1g", "--memory"),
        ("millstream.spin.us=1", "--spin"),
        ("millstream.shards=1", "--shards"),
    ] {
        let text = refused(&["--set", key], 2);
        assert!(text.contains(&format!("use the flag {flag}")), "{text}");
    }
    let text = refused(&["--memory", "63MiB"], 2);
    assert!(text.contains("use --memory 64MiB or more"), "{text}");
    let text = refused(&["--set", "no.such.key=1"], 2);
    assert!(text.contains("millstream configs"), "{text}");
}

#[test]
fn c109_the_broker_describes_what_it_runs_with() {
    let broker = Broker::start_with(&["--spin", "7"]);
    let resource = DescribeConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let rows = broker.connect().ask(4, &request).results.remove(0).configs;
    let address = format!("PLAINTEXT://{}", broker.address());
    let data = broker.data_dir().display().to_string();
    let memory = (64 << 20).to_string();
    for (key, value) in [
        ("listeners", &*address),
        ("advertised.listeners", &address),
        ("log.dirs", &data),
        ("millstream.memory", &memory),
        ("millstream.spin.us", "7"),
        ("millstream.shards", "1"),
    ] {
        let row = rows.iter().find(|row| row.name == key).unwrap();
        assert_eq!((row.value.as_deref(), row.config_source), (Some(value), 4), "{key}");
    }
}

#[test]
fn what_recovery_cannot_accept_ends_with_its_number() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    produce(&mut client, "t", 0, batch(5, 1000));
    assert!(broker.stop().success());
    let mut damaged = 0;
    let mut folders = vec![broker.data_dir().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.contains("checkpoint") {
                std::fs::write(&path, b"not what was written").unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0, "there is a checkpoint");
    let ran = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(broker.data_dir())
        .output()
        .unwrap();
    let text = judged(&ran, 108);
    assert!(text.contains("reason 108"), "{text}");
}

#[test]
fn a_directory_that_nobody_knows_is_kept_when_it_is_in_the_way() {
    let mut broker = Broker::start();
    assert!(broker.stop().success());
    let stranger = broker.data_dir().join("t-0");
    std::fs::create_dir(&stranger).unwrap();
    std::fs::write(stranger.join("notes.txt"), "mine").unwrap();
    broker.restart();
    create(&mut broker.connect(), topic("t", 1));
    produce(&mut broker.connect(), "t", 0, batch(5, 1000));
    assert!(!stranger.join("notes.txt").exists(), "the new partition has its own directory");
    let listed = std::fs::read_dir(broker.data_dir()).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = listed.filter(|path| path.to_string_lossy().ends_with("-stray")).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(std::fs::read_to_string(kept[0].join("notes.txt")).unwrap(), "mine");
    assert!(broker.log().contains("it is kept as"));
    assert!(broker.stop().success());
}

#[test]
fn a_damaged_snapshot_is_named_with_its_remedy() {
    let mut broker = Broker::start();
    create(&mut broker.connect(), topic("t", 1));
    produce(&mut broker.connect(), "t", 0, batch(5, 1000));
    assert!(broker.stop().success());
    let name = "t-0/00000000000000000005.snapshot";
    let path = broker.data_dir().join(name);
    std::fs::write(&path, b"not what was written").unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(broker.data_dir())
        .output()
        .unwrap();
    let text = judged(&ran, 5);
    assert!(text.contains(name) && text.contains("delete this file"), "{text}");
    std::fs::remove_file(&path).unwrap();
    broker.restart();
    assert!(broker.stop().success());
}

#[test]
fn nobody_needs_to_read_what_it_says() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let directory = tempfile::tempdir().unwrap();
    // Free again when this is dropped, as far as anybody can know.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--memory", "64MiB", "--listen", &address.to_string(), "--data-dir"])
        .arg(directory.path())
        .env("MILLSTREAM_LOG", "debug")
        .stdout(full())
        .stderr(full())
        .spawn()
        .unwrap();
    while TcpStream::connect(address).is_err() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was ready");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn settings_that_would_do_harm_are_refused() {
    for key in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
        let text = refused(&["--set", &format!("{key}=0")], 2);
        assert!(text.contains("use -1 for no limit"), "{text}");
        refused(&["--set", &format!("{key}=-2")], 2);
    }
    for address in ["0.0.0.0:99", "[::]:99", "a b:99"] {
        let text = refused(&["--advertise", address], 2);
        assert!(text.contains("that they can reach"), "{text}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(judged(&ran, 2).contains("not a directory"));
}
