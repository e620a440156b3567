//! The hosts of a Ray cluster: every host that offers a resource runs one round at a time. Ray is a Python package, which is
//! in processes of its own here and there; what runs the trials there is this very program.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Outcome, Runner, UNREACHABLE, command, run_command::run};
use crate::{Error, Lab, Order, Ray, inputs, load::Package, manifest::Kind};

/// The helper program.
const PROGRAM: &str = include_str!("on_ray.py");
/// What the helper needs.
pub(crate) const RAY: Package = Package { module: "ray", pip: "ray" };

/// A host of the cluster.
#[derive(Deserialize)]
struct Node {
    name: String,
    id: String,
}

/// A host, and what is sent to it.
pub(super) struct OnRay<'a> {
    node: Node,
    cluster: &'a Ray,
    order: &'a Order<'a>,
    kind: Kind,
    helper: PathBuf,
    packed: PathBuf,
}

/// The hosts of the cluster; `folder` is for what is sent there.
pub(super) fn hosts<'a>(
    cluster: &'a Ray,
    order: &'a Order<'a>,
    kind: Kind,
    program: &Path,
    folder: &Path,
) -> Result<Vec<OnRay<'a>>, Error> {
    let (helper, packed) = (folder.join("on_ray.py"), folder.join("sent.tar"));
    fs::write(&helper, PROGRAM).map_err(Error::file(&helper))?;
    let sent = inputs::to_send(order.lab, order.folder)?;
    pack(order, program, &sent, &packed).map_err(Error::file(&packed))?;
    let words = [helper.as_os_str(), "hosts".as_ref(), cluster.address.as_ref(), cluster.resource.as_ref()];
    let words = words.map(OsString::from);
    let failed = |problem: String| Error::Start { place: "ray".into(), problem };
    let found = run(&python(order.lab), &words, "", order.stop, ("ray", RAY.pip))?;
    if found.code != Some(0) {
        return Err(failed(found.said));
    }
    let nodes: Vec<Node> = serde_json::from_str(&found.said).map_err(|_| failed(found.said.clone()))?;
    if nodes.is_empty() {
        let resource = &cluster.resource;
        let offer = format!("ray start --resources '{{\"{resource}\": 1}}'");
        return Err(failed(format!(
            "no host of the cluster offers {resource}; start those that may run trials with {offer}"
        )));
    }
    let host = |node| OnRay { node, cluster, order, kind, helper: helper.clone(), packed: packed.clone() };
    Ok(nodes.into_iter().map(host).collect())
}

impl Runner for OnRay<'_> {
    fn name(&self) -> &str {
        &self.node.name
    }

    fn round(&mut self, round: u32, into: &Path) -> Result<Outcome, Error> {
        let _ = fs::remove_dir_all(into);
        fs::create_dir_all(into).map_err(Error::file(into))?;
        let output = format!("out-r{round}");
        let own =
            [self.helper.as_os_str(), "round".as_ref(), self.cluster.address.as_ref(), self.cluster.resource.as_ref()];
        let sent = [self.node.id.as_ref(), self.packed.as_os_str(), output.as_ref(), into.as_os_str()];
        let words: Vec<OsString> = own.into_iter().chain(sent).map(OsString::from).collect();
        let words: Vec<OsString> = words.into_iter().chain(command(self.kind, round, &output)).collect();
        let place = format!("host {:?}", self.node.name);
        let ran = run(&python(self.order.lab), &words, "", self.order.stop, (&place, RAY.pip))?;
        match ran.code {
            Some(0) => Ok(Outcome::Ran(into.to_owned())),
            Some(UNREACHABLE) | None => Ok(Outcome::Lost(ran.said)),
            Some(_) => Err(Error::Start { place, problem: format!("the lab there ended: {}", ran.said) }),
        }
    }
}

fn python(lab: &Lab) -> PathBuf {
    crate::load::interpreter(lab.python.as_deref())
}

/// This program, the lab and the files that it names.
fn pack(order: &Order<'_>, program: &Path, sent: &[PathBuf], packed: &Path) -> std::io::Result<()> {
    let mut archive = tar::Builder::new(File::create(packed)?);
    archive.append_path_with_name(program, "taut")?;
    let mut header = tar::Header::new_gnu();
    header.set_size(order.file.1.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "lab.toml", order.file.1.as_bytes())?;
    for sent in sent {
        if sent.is_dir() { archive.append_dir_all(sent, sent) } else { archive.append_path(sent) }?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_is_a_program_that_tells_hosts_of_one_machine_apart() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("on_ray.py"), PROGRAM).unwrap();
        let script = "import on_ray, json\nnode = lambda id, n, **r: {'Alive': n > 0, 'NodeID': id * 9, 'NodeManagerHostname': 'arm', 'Resources': r}\n\
                      print(json.dumps(on_ray.hosts([node('a', 1, taut_host=1.0), node('b', 1, taut_host=1.0), node('c', 0, taut_host=1.0), node('d', 1)], 'taut_host')))";
        let python =
            std::process::Command::new("python3").args(["-c", script]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&python.stdout).into_owned();
        let nodes: Vec<Node> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{python:?}"));
        assert_eq!(nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["arm-aaaaaa", "arm-bbbbbb"]);
    }
}
