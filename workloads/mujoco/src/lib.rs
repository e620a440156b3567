//! MuJoCo through its C library, which the Python package `mujoco` carries. It is opened at run time, so that nothing of it is
//! needed to build. Only functions are called: MuJoCo's structures change with its versions, and none is read here.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::{Path, PathBuf},
    ptr::NonNull,
};

use anyhow::{Context, Result, bail, ensure};
use libloading::Library;

/// mjtState: which parts of a state `mj_getState` and `mj_setState` move.
const QPOS: c_int = 1 << 1;
const QVEL: c_int = 1 << 2;
const CTRL: c_int = 1 << 6;
/// Versions with the functions below: MAJOR * 1000 and up to the next.
const MAJOR: c_int = 4;
const ERROR_BYTES: usize = 1000;

type Model = c_void;
type Data = c_void;

/// The functions, as `mujoco.h` of version 4 declares them. They live as long as the library.
struct Functions {
    make_data: unsafe extern "C" fn(*const Model) -> *mut Data,
    delete_data: unsafe extern "C" fn(*mut Data),
    delete_model: unsafe extern "C" fn(*mut Model),
    forward: unsafe extern "C" fn(*const Model, *mut Data),
    step: unsafe extern "C" fn(*const Model, *mut Data),
    state_size: unsafe extern "C" fn(*const Model, c_int) -> c_int,
    get_state: unsafe extern "C" fn(*const Model, *const Data, *mut f64, c_int),
    set_state: unsafe extern "C" fn(*const Model, *mut Data, *const f64, c_int),
    read_sensor: unsafe extern "C" fn(*const Model, *const Data, c_int, f64, *mut f64, c_int) -> *const f64,
    reset_to_key: unsafe extern "C" fn(*const Model, *mut Data, c_int),
    multiply_by_inertia: unsafe extern "C" fn(*const Model, *const Data, *mut f64, *const f64),
    newton_euler: unsafe extern "C" fn(*const Model, *mut Data, c_int, *mut f64),
}

/// A model and its state.
pub struct Simulation {
    model: NonNull<Model>,
    data: NonNull<Data>,
    call: Functions,
    sizes: Sizes,
    // Last: it is unloaded after all else.
    _library: Library,
}

/// Numbers in each part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Positions: a free joint has 7, a hinge 1.
    pub qpos: usize,
    /// Velocities: a free joint has 6, a hinge 1.
    pub qvel: usize,
    /// Controls, one an actuator.
    pub ctrl: usize,
}

// SAFETY: model and data belong to this value alone, and MuJoCo binds neither to a thread.
unsafe impl Send for Simulation {}

impl Simulation {
    /// The model that `xml` describes, in its first state, with MuJoCo's library at `path`.
    ///
    /// # Errors
    /// The library cannot be opened or is of another major version; the description is wrong.
    pub fn new(path: &Path, xml: &str) -> Result<Simulation> {
        let shown = path.display();
        // SAFETY: what the package `mujoco` installs under this name runs no code on load but its own constructors.
        let library = unsafe { Library::new(path) }
            .with_context(|| format!("{shown}: MuJoCo's library; pip install 'mujoco>=4,<5'"))?;
        // SAFETY: `int mj_version(void)`.
        let version = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"mj_version")?() };
        // 4.0.0 is 4000000, 3.3.2 was 332.
        let major = if version >= 1_000_000 { version / 1_000_000 } else { version / 100 };
        ensure!(major == MAJOR, "{shown}: MuJoCo {major} (mj_version {version}); pip install 'mujoco>=4,<5'");
        let call = Functions::of(&library).with_context(|| format!("{shown}: pip install 'mujoco>=4,<5'"))?;
        let model = compiled(&library, xml).context("the robot's description")?;
        // SAFETY: the model is complete.
        let Some(data) = NonNull::new(unsafe { (call.make_data)(model.as_ptr()) }) else {
            // SAFETY: nobody else has it.
            unsafe { (call.delete_model)(model.as_ptr()) };
            bail!("MuJoCo has no memory for the model's state");
        };
        // SAFETY: model and data fit each other.
        let size = |part| unsafe { (call.state_size)(model.as_ptr(), part) } as usize;
        let sizes = Sizes { qpos: size(QPOS), qvel: size(QVEL), ctrl: size(CTRL) };
        Ok(Simulation { model, data, call, sizes, _library: library })
    }

    /// How many numbers the parts of the state have.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Moves on by the model's time step, under these controls.
    ///
    /// # Panics
    /// `controls` has another length than the model has actuators.
    pub fn step(&mut self, controls: &[f64]) {
        self.set(CTRL, self.sizes.ctrl, controls);
        // SAFETY: model and data fit each other, and no reference into them is alive.
        unsafe { (self.call.step)(self.model.as_ptr(), self.data.as_ptr()) }
    }

    /// Places everything, and computes what depends on it: sensors, contacts.
    ///
    /// # Panics
    /// `qpos` has another length than the model's.
    pub fn place(&mut self, qpos: &[f64]) {
        self.set(QPOS, self.sizes.qpos, qpos);
        // SAFETY: as in `step`.
        unsafe { (self.call.forward)(self.model.as_ptr(), self.data.as_ptr()) }
    }

    /// Places everything as it moves, and computes what depends on it.
    ///
    /// # Panics
    /// `qpos` or `qvel` has another length than the model's.
    pub fn place_moving(&mut self, qpos: &[f64], qvel: &[f64]) {
        self.set(QVEL, self.sizes.qvel, qvel);
        self.place(qpos);
    }

    /// The state that the description has as its keyframe `key`, from 0; without such a one, the first state.
    pub fn reset(&mut self, key: usize) {
        // SAFETY: as in `step`; MuJoCo itself looks whether there is such a keyframe.
        unsafe {
            (self.call.reset_to_key)(self.model.as_ptr(), self.data.as_ptr(), key as c_int);
            (self.call.forward)(self.model.as_ptr(), self.data.as_ptr());
        }
    }

    /// The joint-space inertia, as placed, times these accelerations: N, N·m.
    ///
    /// # Panics
    /// One of them has another length than the velocities.
    pub fn inertia_times(&self, accelerations: &[f64], forces: &mut [f64]) {
        assert_eq!([accelerations.len(), forces.len()], [self.sizes.qvel; 2]);
        // SAFETY: both have as many numbers as the model has degrees of freedom; the inertia was computed when it was placed.
        unsafe {
            (self.call.multiply_by_inertia)(
                self.model.as_ptr(),
                self.data.as_ptr(),
                forces.as_mut_ptr(),
                accelerations.as_ptr(),
            );
        }
    }

    /// The forces that gravity and the motion ask for, as placed, without acceleration: N, N·m.
    ///
    /// # Panics
    /// `forces` has another length than the velocities.
    pub fn bias(&mut self, forces: &mut [f64]) {
        assert_eq!(forces.len(), self.sizes.qvel);
        // SAFETY: as many numbers as the model has degrees of freedom; positions and velocities were computed when it was placed.
        unsafe { (self.call.newton_euler)(self.model.as_ptr(), self.data.as_ptr(), 0, forces.as_mut_ptr()) }
    }

    /// Reads the positions: m, unit quaternions, rad.
    ///
    /// # Panics
    /// `qpos` has another length than the model's.
    pub fn qpos(&self, qpos: &mut [f64]) {
        self.get(QPOS, self.sizes.qpos, qpos);
    }

    /// Reads the velocities: m/s, rad/s.
    ///
    /// # Panics
    /// `qvel` has another length than the model's.
    pub fn qvel(&self, qvel: &mut [f64]) {
        self.get(QVEL, self.sizes.qvel, qvel);
    }

    /// The last values of a sensor, by its place in the model's description.
    ///
    /// # Safety
    /// `N` is the number of values of this sensor; MuJoCo has no function that says it.
    pub unsafe fn sensor<const N: usize>(&self, id: usize) -> [f64; N] {
        let mut value = [f64::NAN; N];
        // SAFETY: sensors without a history are given as a pointer into the data, which lives on; `value` is for those with
        // one. Both have N numbers, by the caller's promise.
        unsafe {
            let (model, data) = (self.model.as_ptr(), self.data.as_ptr());
            let read = (self.call.read_sensor)(model, data, id as c_int, 0.0, value.as_mut_ptr(), 0);
            if !read.is_null() {
                value = *read.cast::<[f64; N]>();
            }
        }
        value
    }

    fn set(&mut self, part: c_int, size: usize, values: &[f64]) {
        assert_eq!(values.len(), size);
        // SAFETY: `values` has as many numbers as this part of the state.
        unsafe { (self.call.set_state)(self.model.as_ptr(), self.data.as_ptr(), values.as_ptr(), part) }
    }

    fn get(&self, part: c_int, size: usize, values: &mut [f64]) {
        assert_eq!(values.len(), size);
        // SAFETY: `values` has as many numbers as this part of the state.
        unsafe { (self.call.get_state)(self.model.as_ptr(), self.data.as_ptr(), values.as_mut_ptr(), part) }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: both belong to this value, the data was made of the model, and the library is still loaded.
        unsafe {
            (self.call.delete_data)(self.data.as_ptr());
            (self.call.delete_model)(self.model.as_ptr());
        }
    }
}

impl Functions {
    fn of(library: &Library) -> Result<Functions, libloading::Error> {
        // SAFETY: the types are those of mujoco.h, version 4, which `Simulation::new` has checked.
        unsafe {
            Ok(Functions {
                make_data: *library.get(b"mj_makeData")?,
                delete_data: *library.get(b"mj_deleteData")?,
                delete_model: *library.get(b"mj_deleteModel")?,
                forward: *library.get(b"mj_forward")?,
                step: *library.get(b"mj_step")?,
                state_size: *library.get(b"mj_stateSize")?,
                get_state: *library.get(b"mj_getState")?,
                set_state: *library.get(b"mj_setState")?,
                read_sensor: *library.get(b"mj_readSensor")?,
                reset_to_key: *library.get(b"mj_resetDataKeyframe")?,
                multiply_by_inertia: *library.get(b"mj_mulM")?,
                newton_euler: *library.get(b"mj_rne")?,
            })
        }
    }
}

/// The checkout's Python and its MuJoCo, for tests, where it is installed.
pub fn of_checkout() -> Option<(PathBuf, PathBuf)> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let packages = std::fs::read_dir(venv.join("lib")).ok()?.flatten().map(|python| python.path());
    let libraries = packages.filter_map(|path| std::fs::read_dir(path.join("site-packages/mujoco")).ok());
    let library = libraries
        .flat_map(|files| files.flatten().map(|file| file.path()))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmujoco.so")))?;
    Some((venv.join("bin/python"), library))
}

/// Makes a model of its description.
fn compiled(library: &Library, xml: &str) -> Result<NonNull<Model>> {
    let xml = CString::new(xml)?;
    let mut error: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    type Parse = unsafe extern "C" fn(*const c_char, *const c_void, *mut c_char, c_int) -> *mut c_void;
    // SAFETY: the types are those of mujoco.h, version 4; texts end with a zero; the specification is not used after its
    // deletion, and a compiled model does not point into it.
    unsafe {
        let parse = library.get::<Parse>(b"mj_parseXMLString")?;
        let compile = library.get::<unsafe extern "C" fn(*mut c_void, *const c_void) -> *mut Model>(b"mj_compile")?;
        let why = library.get::<unsafe extern "C" fn(*mut c_void) -> *const c_char>(b"mjs_getError")?;
        let delete = library.get::<unsafe extern "C" fn(*mut c_void)>(b"mj_deleteSpec")?;
        let specification = parse(xml.as_ptr(), std::ptr::null(), error.as_mut_ptr(), ERROR_BYTES as c_int);
        ensure!(!specification.is_null(), "{}", text(error.as_ptr()));
        let model = NonNull::new(compile(specification, std::ptr::null()));
        let failed = if model.is_none() { text(why(specification)) } else { String::new() };
        delete(specification);
        model.with_context(|| failed)
    }
}

/// # Safety
/// `text` is null, or ends with a zero.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}
