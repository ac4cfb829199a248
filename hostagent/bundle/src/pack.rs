//! Finds what is to be sent, and writes it as a bundle.

use crate::find::attributes;
use crate::list::{
    Content, DEPTH_MAX, Directory, ENTRIES_MAX, Entry, Kind, LIST_BYTES_MAX, List, MODE_MAX, Owner,
    Run, check_name,
};
use crate::unix::{fits, path, told};
use prost::Message;
use rustix::fs::{FileType, OFlags, SeekFrom, seek};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wormcast_words::why;

/// Read and written at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// `st_blocks` counts these.
const BLOCK_BYTES: u64 = 512;

/// What is left out, and what goes along.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Patterns of the shell: of a name, or of a whole path from its top.
    pub exclude: Vec<CString>,
    /// Extended attributes of the class `user` go along.
    pub attributes: bool,
    /// Numbers of owner and group go along.
    pub owners: bool,
}

/// Why something is not sent.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It cannot be a bundle.
    #[error("{0}")]
    Refused(String),
    /// The file system refuses.
    #[error("{}: {}", told(.path), why(.source))]
    Storage { path: PathBuf, source: io::Error },
    /// A file is not as it was when the list was made.
    #[error("{} changed while it was sent", told(.0))]
    Changed(PathBuf),
    /// Whoever reads is gone.
    #[error("nobody reads: {}", why(.0))]
    Broken(io::Error),
}

/// What is to be sent, as it was found.
#[derive(Clone, Debug)]
pub struct Packed {
    list: List,
    encoded: Vec<u8>,
    content_bytes: u64,
    /// Where each top lies.
    tops: BTreeMap<usize, PathBuf>,
    /// Sockets, pipes and devices, which are not sent.
    pub left_out: Vec<PathBuf>,
}

/// Looks at files and directories, in the order of their names. What a path leads to is sent, with the path's last name;
/// symbolic links in directories stay links.
///
/// # Errors
/// [`PackError`]: nothing is sent in part.
pub fn pack(paths: &[PathBuf], options: &Options) -> Result<Packed, PackError> {
    let mut finder = Finder {
        options,
        entries: Vec::new(),
        links: BTreeMap::new(),
        left_out: Vec::new(),
    };
    let mut tops: BTreeMap<usize, PathBuf> = BTreeMap::new();
    for path in paths {
        let name = top_name(path)?;
        let place = finder.entries.len();
        let about = fs::metadata(path).map_err(|error| storage(path, error))?;
        finder.find(path, name.as_bytes(), 0, &about)?;
        let Some(found) = finder.entries.get(place) else {
            continue;
        };
        let same = |at: usize| finder.entries[at].name == found.name;
        if let Some((_, other)) = tops.iter().find(|(at, _)| same(**at)) {
            let [one, two] = [other, path].map(|it| told(it));
            return Err(PackError::Refused(format!(
                "{one} and {two} have the same name"
            )));
        }
        tops.insert(place, path.clone());
    }
    let list = List {
        entries: finder.entries,
        block_bytes: 0,
    };
    if list.entries.is_empty() {
        let left_out = finder.left_out.first();
        let why = left_out.map_or("everything is excluded".to_owned(), |path| {
            let name = told(path);
            format!("{name} is no file, directory or link")
        });
        return Err(PackError::Refused(format!(
            "there is nothing to send: {why}"
        )));
    }
    let packed = Packed {
        list: List::default(),
        encoded: Vec::new(),
        content_bytes: 0,
        tops,
        left_out: finder.left_out,
    };
    packed.with_list(list)
}

/// A list as it travels.
///
/// # Errors
/// If it is too long.
pub(crate) fn encode(list: &List) -> Result<Vec<u8>, PackError> {
    let encoded = list.encode_to_vec();
    let length = encoded.len();
    if length as u64 > LIST_BYTES_MAX {
        let text = format!("the list of all names has {length} bytes; at most {LIST_BYTES_MAX}");
        return Err(PackError::Refused(text));
    }
    Ok(encoded)
}

impl Packed {
    /// The same with another list of the same entries.
    pub(crate) fn with_list(self, list: List) -> Result<Self, PackError> {
        let content_bytes = list.check().map_err(PackError::Refused)?;
        let encoded = encode(&list)?;
        Ok(Self {
            list,
            encoded,
            content_bytes,
            ..self
        })
    }

    /// What is sent.
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Bytes of the list.
    pub fn list_bytes(&self) -> u64 {
        self.encoded.len() as u64
    }

    /// Bytes of the list and of what comes behind it.
    pub fn bytes(&self) -> u64 {
        self.list_bytes() + self.content_bytes
    }

    /// Writes the list and the contents of the files.
    ///
    /// # Errors
    /// [`PackError`]: the bundle is cut short.
    pub fn write(&self, out: &mut impl Write) -> Result<(), PackError> {
        let mut out = io::BufWriter::with_capacity(PIECE_BYTES, out);
        out.write_all(&self.encoded).map_err(PackError::Broken)?;
        let mut piece = vec![0; PIECE_BYTES];
        for (place, entry) in self.list.entries.iter().enumerate() {
            if let Some(content) = entry.content() {
                self.write_content(place, entry, content, &mut piece, &mut out)?;
            }
        }
        out.flush().map_err(PackError::Broken)
    }

    fn write_content(
        &self,
        place: usize,
        entry: &Entry,
        content: &Content,
        piece: &mut [u8],
        out: &mut impl Write,
    ) -> Result<(), PackError> {
        let runs = content.coming();
        self.read_content(place, entry, content, runs, piece, |bytes, _| {
            out.write_all(bytes).map_err(PackError::Broken)
        })
    }

    /// Reads runs of a file, which must be as it was when the list was made; `take` gets the bytes and where they end.
    pub(crate) fn read_content(
        &self,
        place: usize,
        entry: &Entry,
        content: &Content,
        runs: impl Iterator<Item = Run>,
        piece: &mut [u8],
        mut take: impl FnMut(&[u8], u64) -> Result<(), PackError>,
    ) -> Result<(), PackError> {
        let path = self.source(place);
        let file = open(&path, entry.directory != 0).map_err(|error| storage(&path, error))?;
        check_same(&file, &path, entry, content)?;
        for run in runs {
            let mut place = run.start;
            let end = run.end();
            while place < end {
                let wanted = piece.len().min((end - place) as usize);
                match file.read_at(&mut piece[..wanted], place) {
                    Ok(0) => return Err(PackError::Changed(path)),
                    Ok(read) => {
                        place += read as u64;
                        take(&piece[..read], place)?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(storage(&path, error)),
                }
            }
        }
        check_same(&file, &path, entry, content)
    }

    /// Where an entry comes from.
    fn source(&self, place: usize) -> PathBuf {
        let names = self.list.names(place);
        // The top of an entry is the last one that begins before it.
        let top = self.tops.range(..=place).next_back();
        let top = top.map_or(Path::new(""), |(_, path)| path);
        if names.len() == 1 {
            return top.to_owned();
        }
        top.join(path(&names[1..]))
    }
}

/// Whether a file is as it was when the list was made.
fn check_same(file: &File, path: &Path, entry: &Entry, content: &Content) -> Result<(), PackError> {
    let about = file.metadata().map_err(|error| storage(path, error))?;
    let time = (about.mtime(), about.mtime_nsec());
    if about.len() == content.bytes && time == (entry.seconds, entry.nanoseconds.into()) {
        return Ok(());
    }
    Err(PackError::Changed(path.to_owned()))
}

/// The last name of a path, with all links and dots followed if it has none of its own.
fn top_name(path: &Path) -> Result<OsString, PackError> {
    if let Some(name) = path.file_name() {
        return Ok(name.to_owned());
    }
    let whole = fs::canonicalize(path).map_err(|error| storage(path, error))?;
    let name = whole.file_name().map(OsString::from);
    name.ok_or_else(|| {
        let path = told(path);
        PackError::Refused(format!("{path} has no name that it could arrive under"))
    })
}

struct Finder<'a> {
    options: &'a Options,
    entries: Vec<Entry>,
    /// Files with several names, by device and inode: their number.
    links: BTreeMap<(u64, u64), u32>,
    left_out: Vec<PathBuf>,
}

impl Finder<'_> {
    /// `shown`: the path from its top, which patterns are held against.
    fn find(
        &mut self,
        path: &Path,
        shown: &[u8],
        directory: u32,
        about: &Metadata,
    ) -> Result<(), PackError> {
        let exclude = &self.options.exclude;
        if exclude.iter().any(|pattern| fits(pattern, shown)) {
            return Ok(());
        }
        let refused = |what: String| {
            let path = told(path);
            Err(PackError::Refused(format!("{path} {what}")))
        };
        let name = shown.rsplit(|&byte| byte == b'/').next().unwrap_or(shown);
        if let Err(what) = check_name(name) {
            return refused(what);
        }
        if self.entries.len() == ENTRIES_MAX {
            let text = format!("more than {ENTRIES_MAX} files and directories; send them in parts");
            return Err(PackError::Refused(text));
        }
        let number = self.entries.len() as u32 + 1;
        let depth = shown.iter().filter(|&&byte| byte == b'/').count();
        let kind = match FileType::from_raw_mode(about.mode()) {
            FileType::Directory if depth >= DEPTH_MAX => {
                return refused(format!(
                    "is in {depth} directories in each other; at most {DEPTH_MAX}"
                ));
            }
            FileType::Directory => Kind::Directory(Directory {}),
            FileType::Symlink => {
                let text = fs::read_link(path).map_err(|error| storage(path, error))?;
                Kind::Symbolic(text.into_os_string().into_vec())
            }
            FileType::RegularFile => self.file(path, number, directory != 0, about)?,
            _ => {
                self.left_out.push(path.to_owned());
                return Ok(());
            }
        };
        let attributes = match kind {
            Kind::Directory(_) | Kind::File(_) if self.options.attributes => {
                let file = open_any(path, directory != 0);
                let found = file.and_then(|file| attributes(&file));
                found.map_err(|error| storage(path, error))?
            }
            _ => Vec::new(),
        };
        self.entries.push(Entry {
            name: name.to_vec(),
            directory,
            mode: about.mode() & MODE_MAX,
            seconds: about.mtime(),
            nanoseconds: u32::try_from(about.mtime_nsec()).unwrap_or_default(),
            owner: self.options.owners.then(|| Owner {
                user: about.uid(),
                group: about.gid(),
            }),
            attributes,
            kind: Some(kind),
        });
        if about.is_dir() {
            self.find_in(path, shown, number)?;
        }
        Ok(())
    }

    fn find_in(&mut self, path: &Path, shown: &[u8], number: u32) -> Result<(), PackError> {
        let found = fs::read_dir(path).map_err(|error| storage(path, error))?;
        let found: io::Result<Vec<OsString>> =
            found.map(|entry| entry.map(|it| it.file_name())).collect();
        let mut found = found.map_err(|error| storage(path, error))?;
        found.sort();
        for name in &found {
            let path = path.join(name);
            let about = fs::symlink_metadata(&path).map_err(|error| storage(&path, error))?;
            let shown = [shown, name.as_bytes()].join(&b'/');
            self.find(&path, &shown, number, &about)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        number: u32,
        below: bool,
        about: &Metadata,
    ) -> Result<Kind, PackError> {
        if about.nlink() > 1 {
            let first = self.links.entry((about.dev(), about.ino()));
            let first = *first.or_insert(number);
            if first != number {
                return Ok(Kind::Hard(first));
            }
        }
        let bytes = about.len();
        // Whether it can be read is known before anything is sent.
        let file = open(path, below).map_err(|error| storage(path, error))?;
        let runs = if about.blocks() * BLOCK_BYTES < bytes {
            runs(&file, bytes).map_err(|error| storage(path, error))?
        } else {
            None
        };
        Ok(Kind::File(Content {
            bytes,
            sparse: runs.is_some(),
            runs: runs.unwrap_or_default(),
            ..Content::default()
        }))
    }
}

fn open(path: &Path, below: bool) -> io::Result<File> {
    let file = open_any(path, below)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file any more"));
    }
    Ok(file)
}

/// A file in a directory may have become a link, or a pipe without a writer, since it was looked at.
fn open_any(path: &Path, below: bool) -> io::Result<File> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if below {
        flags |= OFlags::NOFOLLOW;
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

/// What of a file is there; `None` where the file system does not tell holes, or there are none.
fn runs(file: &File, bytes: u64) -> io::Result<Option<Vec<Run>>> {
    let mut runs = Vec::new();
    let mut place = 0;
    while place < bytes {
        let start = match seek(file, SeekFrom::Data(place)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(rustix::io::Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let end = seek(file, SeekFrom::Hole(start))?.min(bytes);
        if end <= start {
            break;
        }
        let bytes = end - start;
        runs.push(Run { start, bytes });
        place = end;
    }
    let whole = runs.len() == 1 && runs[0].bytes == bytes;
    Ok((!whole).then_some(runs))
}

fn storage(path: &Path, source: io::Error) -> PackError {
    let path = path.to_owned();
    PackError::Storage { path, source }
}
