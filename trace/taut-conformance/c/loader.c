/* loader OBJECT: a thread's first stamp, from a shared object, meets the constructor of another that is being loaded and
 * stamps, too. Ends by SIGALRM if they wait for each other. */
#include "taut.h"

#include <sched.h>

#include "elsewhere.h"

static pid_t stamper;
static int is_loading;

static void *stamp_first(void *unused) {
  __atomic_store_n(&stamper, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
  while (!__atomic_load_n(&is_loading, __ATOMIC_ACQUIRE)) {} /* never asleep */
  stamp_in_linked_object(2);
  return unused;
}

static char state_of(pid_t tid) {
  char path[64], text[256] = "";
  char *name_end;
  FILE *file;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
  file = fopen(path, "r");
  if (!file) return 'X';
  name_end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
  fclose(file);
  return name_end ? name_end[2] : 'X';
}

void while_it_loads(void);
void while_it_loads(void) {
  char state;
  __atomic_store_n(&is_loading, 1, __ATOMIC_RELEASE);
  /* Until it waits for the loader's lock, or has ended. */
  do {
    sched_yield();
    state = state_of(stamper);
  } while (state != 'S' && state != 'X' && state != 'Z');
}

int main(int count, char **values) {
  pthread_t thread;
  if (count != 2 || pthread_create(&thread, NULL, stamp_first, NULL)) return 2;
  while (!__atomic_load_n(&stamper, __ATOMIC_ACQUIRE)) sched_yield();
  alarm(60);
  if (!dlopen(values[1], RTLD_NOW | RTLD_LOCAL)) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  pthread_join(thread, NULL);
  return taut_attached() && !taut_lost() ? 0 : 1;
}
