/* The functions that stand behind those of this library: libtracetools', which LTTng needs, and rcl's and rmw's.
 *
 * rclpy loads them with RTLD_LOCAL, where RTLD_NEXT does not look; then the library's name serves, and last the library that
 * called, which was linked to what it calls.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TAUT_ROS2_REAL_H
#define TAUT_ROS2_REAL_H

/* In libdl before glibc 2.34, which every process with ROS 2 has. */
static void *ros2_dlsym(void *, const char *) __attribute__((weakref("dlsym")));
static int ros2_dlclose(void *) __attribute__((weakref("dlclose")));

typedef struct {
  void *address; /* atomic: NULL until looked for, `nothing` where there is none */
  const char *name, *library;
  void *own; /* this library's function of that name */
} real_t;

static char nothing;
/* All of them stand in one section: rcl_init looks for them in one go. */
#define REAL(variable, function_name, library_name, own_function) \
  static real_t variable __attribute__((section("taut_real"), used)) = {NULL, function_name, library_name, (void *)own_function}

static void *found_in(void *library, const real_t *real) {
  void *address = ros2_dlsym(library, real->name);
  return address == real->own ? NULL : address;
}

/* Of a library that is loaded already. */
static void *found_in_file(const char *path, const real_t *real) {
  void *library = taut_dlopen_(path, RTLD_LAZY | 4 /* RTLD_NOLOAD */), *address = NULL;
  if (!library) return NULL;
  address = found_in(library, real);
  if (ros2_dlclose) ros2_dlclose(library); /* Its caller keeps it loaded. */
  return address;
}

TAUT_COLD static void *look_up(real_t *real, const void *caller) {
  const int error_number = errno;
  void *found = NULL;
  taut_object_t object;
  if (taut_dlopen_ && ros2_dlsym) {
    found = found_in((void *)-1L /* RTLD_NEXT */, real);
    if (!found) found = found_in_file(real->library, real);
    if (!found && caller && taut_dladdr_ && taut_dladdr_(caller, &object) && object.path) found = found_in_file(object.path, real);
  }
  __atomic_store_n(&real->address, found ? found : &nothing, __ATOMIC_RELEASE);
  errno = error_number;
  return found;
}

/* NULL where there is none. */
static inline void *real_of(real_t *real, const void *caller) {
  void *found = __atomic_load_n(&real->address, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!found, 0)) return look_up(real, caller);
  return found == &nothing ? NULL : found;
}

extern real_t __start_taut_real[] __attribute__((visibility("hidden")));
extern real_t __stop_taut_real[] __attribute__((visibility("hidden")));

/* Now, and not at an event: to look a function up takes the loader's lock. What was not there before may be now. */
TAUT_COLD static void look_up_all(const void *caller) {
  real_t *real;
  for (real = __start_taut_real; real < __stop_taut_real; real++) {
    void *found = __atomic_load_n(&real->address, __ATOMIC_ACQUIRE);
    if (!found || found == &nothing) (void)look_up(real, caller);
  }
}

#endif
