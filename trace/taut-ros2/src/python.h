/* rclpy has no tracepoint for its callbacks: callbacks.py, which runs here once in a process of rclpy, wraps them.
 *
 * Python's functions are looked up in the process; this library is linked to no Python. rcl_init is called with the GIL held.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_PYTHON_H
#define TAUT_ROS2_PYTHON_H

static const char callbacks_py[] = {
#include "callbacks.inc"
    , 0};

typedef struct PyObject PyObject; /* opaque */
typedef struct {
  const char *name;
  PyObject *(*function)(PyObject *, PyObject *);
  int flags;
  const char *doc;
} method_t;
enum { METH_VARARGS = 1, METH_O = 8, FILE_INPUT = 257 };

#define PYTHON(X)                                                                  \
  X(int, Py_IsInitialized, (void))                                                 \
  X(int, PyGILState_Check, (void))                                                 \
  X(void, Py_IncRef, (PyObject *))                                                 \
  X(void, Py_DecRef, (PyObject *))                                                 \
  X(void, PyErr_Clear, (void))                                                     \
  X(PyObject *, PyImport_GetModuleDict, (void))                                    \
  X(PyObject *, PyDict_New, (void))                                                \
  X(PyObject *, PyDict_GetItemString, (PyObject *, const char *))                  \
  X(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))             \
  X(PyObject *, PyCFunction_NewEx, (method_t *, PyObject *, PyObject *))           \
  X(PyObject *, PyRun_String, (const char *, int, PyObject *, PyObject *))         \
  X(int, PyArg_ParseTuple, (PyObject *, const char *, ...))                        \
  X(unsigned long long, PyLong_AsUnsignedLongLongMask, (PyObject *))

#define PYTHON_MEMBER(type, name, arguments) type(*name) arguments;
static struct {
  PYTHON(PYTHON_MEMBER)
  PyObject *none;
} python;

static PyObject *python_none(void) {
  python.Py_IncRef(python.none);
  return python.none;
}

/* begin(callback), end(callback): a number that callbacks.py gave it. */
static PyObject *python_begin(PyObject *self, PyObject *callback) {
  (void)self;
  add_event(CALLBACK_START, (void *)(uintptr_t)python.PyLong_AsUnsignedLongLongMask(callback), 0, 0, 0);
  return python_none();
}

static PyObject *python_end(PyObject *self, PyObject *callback) {
  (void)self;
  add_event(CALLBACK_END, (void *)(uintptr_t)python.PyLong_AsUnsignedLongLongMask(callback), 0, 0, 0);
  return python_none();
}

/* begin_coroutine(callback): what was taken for it may be followed by other takes before it runs. */
static PyObject *python_begin_coroutine(PyObject *self, PyObject *callback) {
  (void)self;
  add_event(CALLBACK_START, (void *)(uintptr_t)python.PyLong_AsUnsignedLongLongMask(callback), 8, 0, 0);
  return python_none();
}

/* suspend(callback, coroutine), resume(callback, coroutine): an end and a begin of the same run. */
static PyObject *python_step(PyObject *arguments, uint32_t event, uint64_t flag) {
  unsigned long long callback, coroutine;
  if (!python.PyArg_ParseTuple(arguments, "KK", &callback, &coroutine)) return NULL;
  add_event(event, (void *)(uintptr_t)callback, flag, coroutine, 0);
  return python_none();
}

static PyObject *python_suspend(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_step(arguments, CALLBACK_END, 1);
}

static PyObject *python_resume(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_step(arguments, CALLBACK_START, 2);
}

/* schedule(callback, run): it is to run later; begin_scheduled(callback, run): it does. */
static PyObject *python_add_schedule(PyObject *arguments, uint64_t is_task) {
  unsigned long long callback, run;
  if (!python.PyArg_ParseTuple(arguments, "KK", &callback, &run)) return NULL;
  add_event(SCHEDULE, (void *)(uintptr_t)callback, run, is_task, 0);
  return python_none();
}

static PyObject *python_schedule(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_add_schedule(arguments, 0);
}

/* schedule_task(callback, run): the program created a task. */
static PyObject *python_schedule_task(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_add_schedule(arguments, 1);
}

static PyObject *python_begin_scheduled(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_step(arguments, CALLBACK_START, 4);
}

/* begin_filtered(callback, run): it hands its message to a filter; joined(callback, run): a set has that message. */
static PyObject *python_begin_filtered(PyObject *self, PyObject *arguments) {
  (void)self;
  return python_step(arguments, CALLBACK_START, 16);
}

static PyObject *python_joined(PyObject *self, PyObject *arguments) {
  unsigned long long callback, run;
  (void)self;
  if (!python.PyArg_ParseTuple(arguments, "KK", &callback, &run)) return NULL;
  add_event(JOINED, (void *)(uintptr_t)callback, run, 0, 0);
  return python_none();
}

/* add(kind, handle, owner, name): an object. */
static PyObject *python_add(PyObject *self, PyObject *arguments) {
  int kind;
  unsigned long long handle, owner;
  const char *name;
  (void)self;
  if (!python.PyArg_ParseTuple(arguments, "iKKz", &kind, &handle, &owner, &name)) return NULL;
  if (kind == TIMER_CALLBACK) keep_timer((void *)(uintptr_t)owner);
  if (kind == TIMER_NODE || kind == GROUP_OF_TIMER) keep_timer((void *)(uintptr_t)handle);
  add_object((uint32_t)kind, (void *)(uintptr_t)handle, (void *)(uintptr_t)owner, NULL, 0, name, NULL);
  return python_none();
}

TAUT_COLD static bool find_python(void) {
  void *address;
#define PYTHON_FIND(type, name, arguments)                     \
  address = ros2_dlsym(NULL /* RTLD_DEFAULT */, #name);        \
  if (!address) return false;                                  \
  memcpy(&python.name, &address, sizeof address);
  if (!ros2_dlsym) return false;
  PYTHON(PYTHON_FIND)
  python.none = (PyObject *)ros2_dlsym(NULL, "_Py_NoneStruct");
  return python.none != NULL;
}

/* Once a process; whatever fails leaves rclpy as it is. */
TAUT_COLD static void report_python_callbacks(void) {
  static method_t methods[] = {{"begin", python_begin, METH_O, NULL}, {"end", python_end, METH_O, NULL},
                               {"begin_coroutine", python_begin_coroutine, METH_O, NULL},
                               {"suspend", python_suspend, METH_VARARGS, NULL}, {"resume", python_resume, METH_VARARGS, NULL},
                               {"schedule", python_schedule, METH_VARARGS, NULL},
                               {"schedule_task", python_schedule_task, METH_VARARGS, NULL},
                               {"begin_scheduled", python_begin_scheduled, METH_VARARGS, NULL},
                               {"begin_filtered", python_begin_filtered, METH_VARARGS, NULL},
                               {"joined", python_joined, METH_VARARGS, NULL},
                               {"add", python_add, METH_VARARGS, NULL}};
  static int is_done;
  PyObject *globals, *result;
  size_t i;
  if (is_done || !find_python() || !python.Py_IsInitialized() || !python.PyGILState_Check()) return;
  if (!python.PyDict_GetItemString(python.PyImport_GetModuleDict(), "rclpy")) return;
  is_done = 1; /* with the GIL held */
  globals = python.PyDict_New();
  for (i = 0; globals && i < sizeof methods / sizeof methods[0]; i++) {
    PyObject *function = python.PyCFunction_NewEx(&methods[i], NULL, NULL);
    if (!function) break;
    python.PyDict_SetItemString(globals, methods[i].name, function);
    python.Py_DecRef(function);
  }
  result = globals && i == sizeof methods / sizeof methods[0] ? python.PyRun_String(callbacks_py, FILE_INPUT, globals, globals) : NULL;
  if (result) python.Py_DecRef(result);
  else python.PyErr_Clear();
  if (globals) python.Py_DecRef(globals);
}

#endif
