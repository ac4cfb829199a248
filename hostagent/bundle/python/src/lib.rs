//! Python binding of wormcast-bundle. What takes long releases the interpreter lock.

use ::wormcast_bundle::compare;
use ::wormcast_bundle::kept;
use ::wormcast_bundle::list::Kind;
use ::wormcast_bundle::offer;
use ::wormcast_bundle::pack::{self, PackError};
use ::wormcast_bundle::plan;
use ::wormcast_bundle::unpack::{self, UnpackError};
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use wormcast_words::why;

pyo3::create_exception!(
    wormcast_bundle,
    BundleError,
    PyException,
    "Has a code and a text: no_space, storage, damaged, refused, changed or broken."
);

fn raise(code: &'static str, text: impl ToString) -> PyErr {
    BundleError::new_err((code, text.to_string()))
}

fn pack_error(error: &PackError) -> PyErr {
    let code = match error {
        PackError::Refused(_) => "refused",
        PackError::Storage { .. } => "storage",
        PackError::Changed(_) => "changed",
        PackError::Broken(_) => "broken",
    };
    raise(code, error)
}

fn unpack_error(error: &UnpackError) -> PyErr {
    let code = match error {
        UnpackError::NoSpace(_) => "no_space",
        UnpackError::Storage { .. } => "storage",
        UnpackError::Changed(_) => "changed",
        UnpackError::Damaged(_) => "damaged",
    };
    raise(code, error)
}

fn system_error(error: &std::io::Error) -> PyErr {
    let text = why(error);
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text)),
        None => PyOSError::new_err(text),
    }
}

/// A stream of the caller's, used through a descriptor of its own.
fn stream(descriptor: RawFd) -> PyResult<File> {
    // SAFETY: it is only copied; if it is not open the kernel refuses that.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(File::from(borrowed.try_clone_to_owned()?))
}

fn paths(paths: Vec<Vec<u8>>) -> Vec<PathBuf> {
    let paths = paths.into_iter();
    paths.map(|it| OsString::from_vec(it).into()).collect()
}

/// What is to be sent, as it was found.
#[pyclass(frozen)]
struct Packed(pack::Packed);

#[pymethods]
impl Packed {
    /// Bytes of the list and of what comes behind it.
    #[getter]
    fn size(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn list_bytes(&self) -> u64 {
        self.0.list_bytes()
    }

    /// Sockets, pipes and devices, which are not sent.
    #[getter]
    fn left_out(&self) -> Vec<Vec<u8>> {
        let paths = self.0.left_out.iter();
        paths.map(|it| it.as_os_str().as_bytes().to_vec()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.list().entries.len()
    }

    /// Reads all files, for hashes.
    fn offer(&self, py: Python<'_>) -> PyResult<Offer> {
        let offer = py.detach(|| offer::Offer::new(&self.0));
        let offer = offer.map_err(|error| pack_error(&error))?;
        Ok(Offer(std::sync::Mutex::new(offer)))
    }

    /// Path from its top, kind and length of each entry.
    fn entries(&self) -> Vec<(Vec<u8>, &'static str, u64)> {
        let list = self.0.list();
        let entries = list.entries.iter().enumerate();
        entries
            .map(|(place, entry)| {
                let (kind, bytes) = match &entry.kind {
                    Some(Kind::File(content)) => ("file", content.bytes),
                    Some(Kind::Directory(_)) => ("directory", 0),
                    Some(Kind::Symbolic(_)) => ("symbolic link", 0),
                    Some(Kind::Hard(_)) | None => ("hard link", 0),
                };
                (list.names(place).join(&b'/'), kind, bytes)
            })
            .collect()
    }

    /// Writes all of it to a descriptor.
    fn write(&self, py: Python<'_>, descriptor: RawFd) -> PyResult<()> {
        let mut out = stream(descriptor)?;
        let written = py.detach(|| self.0.write(&mut out));
        written.map_err(|error| pack_error(&error))
    }
}

/// Looks at files and directories. `exclude`: patterns of the shell.
#[pyfunction(name = "pack")]
fn pack_paths(
    py: Python<'_>,
    paths: Vec<Vec<u8>>,
    exclude: Vec<Vec<u8>>,
    attributes: bool,
    owners: bool,
) -> PyResult<Packed> {
    let exclude: Result<Vec<CString>, _> = exclude.into_iter().map(CString::new).collect();
    let exclude = exclude.map_err(|_| raise("refused", "a pattern with a 0 in it"))?;
    let options = pack::Options {
        exclude,
        attributes,
        owners,
    };
    let paths = self::paths(paths);
    let packed = py.detach(|| pack::pack(&paths, &options));
    packed.map(Packed).map_err(|error| pack_error(&error))
}

/// The list of a bundle with hashes.
#[pyclass(frozen)]
struct Offer(std::sync::Mutex<offer::Offer>);

impl Offer {
    fn lock(&self) -> std::sync::MutexGuard<'_, offer::Offer> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl Offer {
    #[getter]
    fn list(&self) -> Vec<u8> {
        self.lock().encoded().to_vec()
    }

    fn __len__(&self) -> usize {
        self.lock().entries()
    }

    /// Nobody is known to lack anything.
    fn begin(&self) {
        self.lock().begin();
    }

    /// Somebody lacks everything.
    fn note_all(&self) {
        self.lock().note_all();
    }

    /// An answer. False: it is none.
    fn note(&self, answer: Vec<u8>) -> bool {
        self.lock().note(&answer)
    }

    /// The bundle with what somebody lacks.
    fn bundle(&self, py: Python<'_>) -> PyResult<Packed> {
        let packed = py.detach(|| self.lock().bundle());
        packed.map(Packed).map_err(|error| pack_error(&error))
    }
}

/// A list that is offered.
#[pyclass(frozen)]
struct Offered(compare::Offered);

#[pymethods]
impl Offered {
    /// Names of its tops.
    fn tops(&self) -> Vec<Vec<u8>> {
        self.0.tops().map(<[u8]>::to_vec).collect()
    }

    /// Which list it is.
    #[getter]
    fn identity(&self) -> [u8; 32] {
        self.0.identity()
    }

    /// What is compared is for nobody any more.
    fn stop(&self) {
        self.0.stop();
    }

    /// Looks for what of it is in a directory, the tops under one of these names.
    #[pyo3(signature = (directory, names, *, umask, preserve, owners, attributes, exact))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn compare(
        &self,
        py: Python<'_>,
        directory: Vec<u8>,
        names: Vec<Vec<Vec<u8>>>,
        umask: u32,
        preserve: bool,
        owners: bool,
        attributes: bool,
        exact: bool,
    ) -> PyResult<Plan> {
        let options = unpack::Options {
            umask,
            preserve,
            owners,
            attributes,
            sync: false,
        };
        let directory = Path::new(OsStr::from_bytes(&directory));
        let plan = py.detach(|| self.0.compare(directory, names, &options, exact));
        let plan = plan.map_err(|error| unpack_error(&error))?;
        Ok(Plan {
            identity: plan.identity,
            answer: plan.answer.clone(),
            plan: std::sync::Mutex::new(Some(std::sync::Arc::new(plan))),
        })
    }
}

/// What is there of a list.
#[pyclass(frozen)]
struct Plan {
    identity: [u8; 32],
    answer: Vec<u8>,
    plan: std::sync::Mutex<Option<std::sync::Arc<plan::Plan>>>,
}

impl Plan {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<std::sync::Arc<plan::Plan>>> {
        self.plan
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl Plan {
    /// Of which list it is.
    #[getter]
    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    /// What is lacking, for whoever offered.
    #[getter]
    fn answer(&self) -> Vec<u8> {
        self.answer.clone()
    }

    /// Nobody needs it any more: others may remove what broken transfers have left.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}

/// Reads a list that is offered from a descriptor.
#[pyfunction]
fn read_offer(
    py: Python<'_>,
    descriptor: RawFd,
    entries: u64,
    list_bytes: u64,
) -> PyResult<Offered> {
    let mut read = stream(descriptor)?;
    let announced = unpack::Announced {
        entries,
        list_bytes,
        bytes: list_bytes,
    };
    let offered = py.detach(|| compare::Offered::read(&mut read, announced));
    offered.map(Offered).map_err(|error| unpack_error(&error))
}

/// All of a bundle, under a hidden name.
#[pyclass(frozen)]
struct Unpacked(std::sync::Mutex<Option<unpack::Unpacked>>);

impl Unpacked {
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&unpack::Unpacked) -> T + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        py.detach(|| {
            let kept = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            kept.as_ref().map(work)
        })
        .ok_or_else(|| raise("storage", "it is closed"))
    }
}

#[pymethods]
impl Unpacked {
    /// Names of what is to be placed.
    fn tops(&self, py: Python<'_>) -> PyResult<Vec<Vec<u8>>> {
        self.with(py, |it| it.tops().map(<[u8]>::to_vec).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, unpack::Unpacked::entries)
    }

    /// Moves one to its place. False: the name is taken.
    fn place(
        &self,
        py: Python<'_>,
        index: usize,
        name: Vec<u8>,
        overwrite: bool,
    ) -> PyResult<bool> {
        let name = Path::new(OsStr::from_bytes(&name));
        let placed = self.with(py, |it| it.place(index, name, overwrite))?;
        placed.map_err(|error| system_error(&error))
    }

    /// Names of what was there already, and is as it was.
    fn unchanged(&self, py: Python<'_>) -> PyResult<Vec<Vec<u8>>> {
        let names = self.with(py, |it| {
            let names = it.unchanged()?;
            Ok(names.into_iter().map(<[u8]>::to_vec).collect())
        })?;
        names.map_err(|error| unpack_error(&error))
    }

    /// Of which list the plan was by which it was made.
    #[getter]
    fn planned(&self, py: Python<'_>) -> PyResult<Option<[u8; 32]>> {
        self.with(py, |it| it.planned().copied())
    }

    /// All has its names: what broken transfers have left of it goes.
    fn done(&self, py: Python<'_>) {
        py.detach(|| {
            let mut kept = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(kept) = kept.as_mut() {
                kept.done();
            }
        });
    }

    /// The names given are on the disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let synced = self.with(py, unpack::Unpacked::sync)?;
        synced.map_err(|error| system_error(&error))
    }

    /// Removes what was not placed.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let kept = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take();
            drop(kept);
        });
    }
}

/// Reads a bundle from a descriptor to its end.
#[pyfunction(name = "unpack")]
#[pyo3(signature = (descriptor, directory, entries, list_bytes, size, *, umask, preserve, owners, attributes, sync, plans=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
fn unpack_stream(
    py: Python<'_>,
    descriptor: RawFd,
    directory: Vec<u8>,
    entries: u64,
    list_bytes: u64,
    size: u64,
    umask: u32,
    preserve: bool,
    owners: bool,
    attributes: bool,
    sync: bool,
    plans: Option<Vec<Py<Plan>>>,
) -> PyResult<Unpacked> {
    let mut read = stream(descriptor)?;
    let options = unpack::Options {
        umask,
        preserve,
        owners,
        attributes,
        sync,
    };
    let announced = unpack::Announced {
        entries,
        list_bytes,
        bytes: size,
    };
    let directory = Path::new(OsStr::from_bytes(&directory));
    let plans: Option<Vec<_>> = plans.map(|plans| {
        let plans = plans.iter();
        plans.filter_map(|plan| plan.get().lock().clone()).collect()
    });
    let unpacked = py.detach(|| {
        let plans: Option<Vec<&plan::Plan>> = plans
            .as_ref()
            .map(|plans| plans.iter().map(|plan| &**plan).collect());
        unpack::unpack(&mut read, announced, directory, options, plans.as_deref())
    });
    let unpacked = unpacked.map_err(|error| unpack_error(&error))?;
    Ok(Unpacked(std::sync::Mutex::new(Some(unpacked))))
}

/// Removes a hidden directory that a program which was killed has left. False: its program lives.
#[pyfunction]
fn remove_left_behind(py: Python<'_>, directory: Vec<u8>, name: Vec<u8>) -> PyResult<bool> {
    let name = CString::new(name).map_err(|_| raise("refused", "a name with a 0 in it"))?;
    let directory = Path::new(OsStr::from_bytes(&directory));
    let removed = py.detach(|| kept::remove_left_behind(directory, &name));
    removed.map_err(|error| system_error(&error))
}

/// Removes what broken transfers have left and is too old, or too much. How many are gone.
#[pyfunction]
fn trim_kept(py: Python<'_>, directory: Vec<u8>) -> PyResult<usize> {
    let directory = Path::new(OsStr::from_bytes(&directory));
    let gone = py.detach(|| kept::trim_kept(directory, std::time::SystemTime::now()));
    gone.map_err(|error| system_error(&error))
}

/// Several files and directories as the content of one message.
#[pymodule]
fn wormcast_bundle(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("BundleError", module.py().get_type::<BundleError>())?;
    module.add("PARTIAL_PREFIX", kept::PARTIAL_PREFIX)?;
    module.add_class::<Packed>()?;
    module.add_class::<Offer>()?;
    module.add_class::<Offered>()?;
    module.add_class::<Plan>()?;
    module.add_class::<Unpacked>()?;
    module.add_function(wrap_pyfunction!(pack_paths, module)?)?;
    module.add_function(wrap_pyfunction!(read_offer, module)?)?;
    module.add_function(wrap_pyfunction!(trim_kept, module)?)?;
    module.add_function(wrap_pyfunction!(unpack_stream, module)?)?;
    module.add_function(wrap_pyfunction!(remove_left_behind, module)?)
}
