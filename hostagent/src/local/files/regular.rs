//! Which files descriptors may be, and what the operating system refuses, as clients are told.
//!
//! To be called from threads with files alone: on a file system that hangs all of this may take for ever.

use super::descriptors::Descriptor;
use super::stream::Stream;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, fstatfs};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use std::fs::File;
use std::io;
use wormcast_agent_core::api::{ApiError, ErrorCode};
use wormcast_words::why;

/// File systems in which to read is to ask the kernel and to write to give it orders, in the name of the agent
/// (`linux/magic.h`).
const KERNEL_FILE_SYSTEMS: [u64; 10] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0xf97c_ff8c, // selinuxfs
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
];

/// A file to be read.
pub(super) fn source(file: File) -> Result<File, ApiError> {
    regular(file, OFlags::WRONLY, "read").map(|(file, _)| file)
}

/// A file to be written. One that is opened for appending has no places to write to.
pub(super) fn target(file: File) -> Result<File, ApiError> {
    let (file, mode) = regular(file, OFlags::RDONLY, "written")?;
    if flags(&file)?.contains(OFlags::APPEND) {
        return Err(refused("is open for appending; open it without O_APPEND"));
    }
    // Where the agent is root, its writes would leave them.
    if mode.intersects(Mode::SUID | Mode::SGID) {
        return Err(refused(
            "is that of a file that gives the rights of its owner",
        ));
    }
    Ok(file)
}

/// What a client has handed over: a file, or the stream that it is in place of one.
pub(super) fn open(descriptor: Descriptor) -> Result<Opened, ApiError> {
    let Some(descriptor) = descriptor.open() else {
        return Err(refused("is closed"));
    };
    let about = fstat(&descriptor).map_err(|error| storage("look at the file", &error.into()))?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => Ok(Opened::File(File::from(descriptor))),
        FileType::Socket if socket_type(&descriptor) == Ok(SocketType::STREAM) => {
            Ok(Opened::Stream(Stream::new(descriptor)))
        }
        _ => Err(refused(
            "is that of neither a regular file nor a stream socket",
        )),
    }
}

/// Not looked at further yet.
pub(super) enum Opened {
    File(File),
    Stream(Stream),
}

fn regular(file: File, wrong: OFlags, what: &str) -> Result<(File, Mode), ApiError> {
    let about = fstat(&file).map_err(|error| storage("look at the file", &error.into()))?;
    let system = fstatfs(&file).map_err(|error| storage("look at the file", &error.into()))?;
    if KERNEL_FILE_SYSTEMS.contains(&(system.f_type as u64)) {
        return Err(refused("is of a file system of the kernel's"));
    }
    let flags = flags(&file)?;
    if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == wrong {
        return Err(refused(&format!("is not open to be {what}")));
    }
    Ok((file, Mode::from_raw_mode(about.st_mode)))
}

fn flags(file: &File) -> Result<OFlags, ApiError> {
    fcntl_getfl(file).map_err(|error| storage("look at the descriptor", &error.into()))
}

fn refused(why: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, format!("the descriptor {why}"))
}

pub(super) fn storage(what: &str, error: &io::Error) -> ApiError {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    if full {
        return ApiError::new(ErrorCode::NoSpace, "no space left on device");
    }
    ApiError::new(ErrorCode::Storage, format!("cannot {what}: {}", why(error)))
}
