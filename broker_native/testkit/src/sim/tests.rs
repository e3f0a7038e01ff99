//! What the simulated disk keeps, loses and tears.
use super::*;

fn file(disk: &SimDisk, name: &str) -> Arc<dyn DiskFile> {
    disk.create_dir_all(Path::new("/d")).unwrap();
    disk.open(Path::new(name), OpenMode::Create).unwrap()
}

#[test]
fn what_was_synced_survives_every_cut() {
    for seed in 0..200 {
        let disk = SimDisk::new();
        let log = file(&disk, "/d/a");
        disk.sync_dir(Path::new("/")).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        log.write_all_at(b"kept", 0).unwrap();
        log.sync_data().unwrap();
        log.write_all_at(b"maybe", 4).unwrap();
        disk.power_cut(seed);
        let after = disk.bytes(Path::new("/d/a")).unwrap();
        assert_eq!(after[..4], *b"kept", "seed {seed}");
    }
}

#[test]
fn unsynced_bytes_and_names_are_lost_kept_and_torn() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new();
        let log = file(&disk, "/d/a");
        disk.sync_dir(Path::new("/")).unwrap();
        log.write_all_at(b"1234", 0).unwrap();
        disk.power_cut(seed * 77);
        seen.insert(disk.bytes(Path::new("/d/a")).ok());
    }
    assert!(
        seen.contains(&None) && seen.contains(&Some(b"1234".to_vec())) && seen.contains(&Some(Vec::new()))
    );
    assert!(seen.contains(&Some(b"12".to_vec())) && seen.contains(&Some(vec![0; 4])));
}

#[test]
fn a_failed_sync_loses_the_bytes_although_the_next_one_succeeds() {
    let disk = SimDisk::new();
    let log = file(&disk, "/d/a");
    disk.sync_dir(Path::new("/")).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    disk.inject(Fault::Sync(0));
    log.write_all_at(b"gone", 0).unwrap();
    assert!(log.sync_data().is_err());
    assert!(log.sync_data().is_ok());
    disk.power_cut(1);
    assert_eq!(disk.bytes(Path::new("/d/a")).unwrap(), b"");
    assert!(log.write_all_at(b"x", 0).is_err(), "a file of before the cut is dead");
}

#[test]
fn a_lock_is_held_once_and_dies_with_its_process() {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/d")).unwrap();
    let first = disk.lock(Path::new("/d/.lock")).unwrap();
    assert!(first.is_some() && disk.lock(Path::new("/d/.lock")).unwrap().is_none());
    disk.crash_processes();
    assert!(disk.lock(Path::new("/d/.lock")).unwrap().is_some());
}
