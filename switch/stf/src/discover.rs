//! Finds programs and their scripts, and compiles what is P4 source.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program and a script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Path of the script without its ending.
    pub name: String,
    /// `.json`, or `.p4` to be compiled first.
    pub program: PathBuf,
    /// `.stf`.
    pub script: PathBuf,
}

/// Finds the cases of files and folders: each `.stf` with the `.json` or else the `.p4`
/// beside it. A `.json` or `.p4` stands for the script beside it; folders are searched with
/// all that is below them. Sorted by name; those whose name has none of `only` in it are
/// left out, unless `only` is empty.
///
/// # Errors
/// A path that is not there, a script without a program, or no script at all.
pub fn discover(paths: &[PathBuf], only: &[String]) -> Result<Vec<Case>, String> {
    let mut scripts = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            search(path, &mut scripts)?;
        } else {
            let known = ["stf", "json", "p4"].map(OsStr::new);
            if !path
                .extension()
                .is_some_and(|ending| known.contains(&ending))
            {
                let path = path.display();
                return Err(format!(
                    "{path} is no folder and no .stf, .json or .p4 file"
                ));
            }
            scripts.insert(path.with_extension("stf"));
        }
    }
    let mut cases = Vec::new();
    for script in scripts {
        let name = script.with_extension("").display().to_string();
        if !only.is_empty() && !only.iter().any(|part| name.contains(part)) {
            continue;
        }
        if !script.is_file() {
            return Err(format!("there is no script {}", script.display()));
        }
        let candidates = ["json", "p4"].map(|ending| script.with_extension(ending));
        let program = candidates.into_iter().find(|path| path.is_file());
        let Some(program) = program else {
            return Err(format!(
                "{name}.stf has no {name}.json or {name}.p4 beside it"
            ));
        };
        cases.push(Case {
            name,
            program,
            script,
        });
    }
    if cases.is_empty() {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(format!("no script is chosen in {}", paths.join(", ")));
    }
    Ok(cases)
}

fn search(folder: &Path, scripts: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let say = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(say)? {
        let entry = entry.map_err(say)?;
        let path = entry.path();
        // Links are not followed: they may lead in a circle.
        if entry.file_type().map_err(say)?.is_dir() {
            search(&path, scripts)?;
        } else if path.extension() == Some(OsStr::new("stf")) {
            scripts.insert(path);
        }
    }
    Ok(())
}

/// The compiler of P4 sources.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program, looked for in `PATH` if it has no slash.
    pub command: PathBuf,
    /// Options beside the names of the files.
    pub options: Vec<String>,
}

impl Default for Compiler {
    fn default() -> Self {
        Self {
            command: "p4c-bm2-ss".into(),
            options: Vec::new(),
        }
    }
}

impl Compiler {
    /// The JSON of a program: read, or compiled first.
    ///
    /// # Errors
    /// What cannot be read, and what the compiler says.
    pub fn json(&self, program: &Path) -> Result<String, String> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        if program.extension() != Some(OsStr::new("p4")) {
            return read(program);
        }
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let output = folder.path().join("program.json");
        let compiled = Command::new(&self.command)
            .args(["--std", "p4-16"])
            .args(&self.options)
            .arg("-o")
            .arg(&output)
            .arg(program)
            .output();
        let command = self.command.display();
        let compiled = compiled.map_err(|error| {
            format!("{command}: {error}; give compiled .json files, or --p4c COMMAND")
        })?;
        if !compiled.status.success() {
            let said = String::from_utf8_lossy(&compiled.stderr);
            return Err(format!("{command}: {}", said.trim()));
        }
        read(&output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_their_programs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("below")).unwrap();
        for name in [
            "a.stf",
            "a.p4",
            "a.json",
            "below/b.stf",
            "below/b.p4",
            "c.json",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let here = [folder.path().to_owned()];
        let all = discover(&here, &[]).unwrap();
        let programs: Vec<PathBuf> = all.iter().map(|case| case.program.clone()).collect();
        assert_eq!(programs, [at("a.json"), at("below/b.p4")]);
        let some = discover(&here, &["below".to_owned()]).unwrap();
        assert_eq!(some, all[1..]);
        assert_eq!(
            discover(&[at("a.json"), at("a.stf")], &[]).unwrap(),
            all[..1]
        );
        for (paths, only, expected) in [
            (vec![at("c.json")], vec![], "there is no script"),
            (vec![at("nowhere")], vec![], "is no folder and no .stf"),
            (
                here.to_vec(),
                vec!["zz".to_owned()],
                "no script is chosen in",
            ),
        ] {
            let error = discover(&paths, &only).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        fs::write(at("d.stf"), "").unwrap();
        let error = discover(&here, &[]).unwrap_err();
        assert!(error.contains("d.stf has no"), "{error}");
    }

    #[test]
    fn a_compiler_that_is_not_there() {
        let compiler = Compiler {
            command: "/no/such/compiler".into(),
            options: Vec::new(),
        };
        let error = compiler.json(Path::new("a.p4")).unwrap_err();
        assert!(error.contains("give compiled .json files"), "{error}");
    }
}
