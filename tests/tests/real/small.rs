//! A small file system, and what fills it.
#![expect(clippy::disallowed_methods, reason = "fills a file system from outside")]

use std::fs::{File, create_dir, remove_file};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Unmounted when dropped.
pub struct Small {
    pub place: PathBuf,
}

impl Small {
    /// Mounts one of so many bytes at a place that this makes.
    pub fn make(place: &Path, bytes: u64) -> Small {
        create_dir(place).unwrap();
        let options = std::ffi::CString::new(format!("size={bytes},mode=0700")).unwrap();
        mount("tmpfs", place, "tmpfs", MountFlags::empty(), options.as_c_str()).expect("the right to mount");
        Small { place: place.to_path_buf() }
    }

    /// Fills what is left.
    pub fn fill(&self, file: &str) -> Ballast {
        self.fill_but(file, 0)
    }

    /// Fills what is left but for so many bytes.
    pub fn fill_but(&self, file: &str, spare: u64) -> Ballast {
        let path = self.place.join(file);
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 12] {
            while self.free() >= spare + size && file.write_all(&vec![1; size as usize]).is_ok() {}
        }
        Ballast { path }
    }

    fn free(&self) -> u64 {
        let stat = statvfs(&self.place).unwrap();
        stat.f_bavail * stat.f_frsize
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(&self.place, UnmountFlags::DETACH).expect("unmounted");
    }
}

pub struct Ballast {
    path: PathBuf,
}

impl Ballast {
    pub fn release(self) {
        remove_file(&self.path).unwrap();
    }
}
