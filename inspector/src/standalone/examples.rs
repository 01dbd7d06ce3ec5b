//! The default cluster and jobs of standalone mode: the files in `examples/`.

use super::manifest::{ManifestError, Manifests};

macro_rules! example {
    ($path:literal) => {
        (concat!("examples/", $path), include_str!(concat!("../../../examples/", $path)))
    };
}

const CLUSTER: (&str, &str) = example!("clusters/gpu.yaml");
const JOBS: [(&str, &str); 9] = [
    example!("jobs/10-services.yaml"),
    example!("jobs/20-lammps.yaml"),
    example!("jobs/30-train.yaml"),
    example!("jobs/40-mpi.yaml"),
    example!("jobs/50-weather.yaml"),
    example!("jobs/60-words.yaml"),
    example!("jobs/70-trouble.yaml"),
    example!("jobs/80-zephyr.yaml"),
    example!("jobs/90-later.yaml"),
];

/// Twenty-one nodes in four racks.
pub fn cluster() -> Result<Manifests, ManifestError> {
    read(&[CLUSTER])
}

/// Gangs, single Pods, and jobs with problems.
pub fn jobs() -> Result<Manifests, ManifestError> {
    read(&JOBS)
}

fn read(files: &[(&str, &str)]) -> Result<Manifests, ManifestError> {
    let mut manifests = Manifests::default();
    for (file, text) in files {
        manifests.read_text(file, text)?;
    }
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_example_is_understood_to_the_last_field() {
        for manifests in [cluster().unwrap(), jobs().unwrap()] {
            assert!(!manifests.documents.is_empty());
            assert_eq!(manifests.warnings, Vec::<String>::new());
        }
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        for file in ["clusters/small.yaml", "gang.yaml", "late-member.yaml"] {
            let mut manifests = Manifests::default();
            manifests.read(&examples.join(file)).unwrap();
            assert_eq!(manifests.warnings, Vec::<String>::new());
        }
    }

    #[test]
    fn all_job_files_are_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/jobs");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("examples/jobs/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        files.sort();
        assert_eq!(files, JOBS.map(|(file, _)| file.to_owned()));
    }
}
