/* The C and C++ producer of the conformance tests: does what the script on stdin says, one line at a
 * time, and answers each with "PID TID RESULT". src/producer.rs is the same in Rust; the words are
 * listed in tests/conformance/run.rs. Compiled as C11 and as C++17. */
#include "taut.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "elsewhere.h"

#ifdef __cplusplus
#include <mutex>
static std::mutex a_mutex;
#else
static pthread_mutex_t a_mutex = PTHREAD_MUTEX_INITIALIZER;
#endif
static uint32_t a_futex_word;

enum { THREADS_MAX = 128, LINE_MAX_BYTES = 512 };

typedef struct {
  pthread_t thread;
  char line[LINE_MAX_BYTES];
  int has_line;
  int is_done;
} worker_t;

static worker_t workers[THREADS_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char **arguments;

static void interpret(int self);

static void answer(long result) {
  char text[64];
  const int length = snprintf(text, sizeof text, "%d %ld %ld\n", (int)getpid(), (long)syscall(SYS_gettid), result);
  if (write(1, text, (size_t)length) != length) _exit(3);
}

/* Byte by byte: what follows the line belongs to a child or to the next program. */
static int read_line(char *line) {
  size_t n = 0;
  while (n < LINE_MAX_BYTES - 1) {
    const ssize_t got = read(0, line + n, 1);
    if (got != 1) return 0;
    if (line[n] == '\n') break;
    n++;
  }
  line[n] = 0;
  return 1;
}

static long in_child(int self, pid_t child) {
  int status = 0;
  if (child == 0) {
    answer(0);
    interpret(self);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return status;
}

/* A shared object of its own that stamps, and leaves. */
static long call_plugin(const char *path, uint64_t id) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = object ? dlsym(object, "stamp_in_plugin") : NULL;
  void (*call)(uint64_t);
  if (!symbol) return -1;
  memcpy(&call, &symbol, sizeof symbol);
  call(id);
  return dlclose(object);
}

static void ignore_signal(int number) { (void)number; }

typedef struct {
  uint64_t threads, stamps, first;
} churn_t;

static void *stamp_some(void *argument) {
  const churn_t *churn = (const churn_t *)argument;
  uint64_t n;
  for (n = 0; n < churn->stamps; n++) TAUT_STAMP("churn", churn->first + n);
  return NULL;
}

/* One short thread after the other. */
static void *churn(void *argument) {
  churn_t *churn = (churn_t *)argument;
  pthread_t thread;
  for (; churn->threads; churn->threads--, churn->first += churn->stamps) {
    if (pthread_create(&thread, NULL, stamp_some, churn)) abort();
    pthread_join(thread, NULL);
  }
  return NULL;
}

static long churn_all(uint64_t lines, uint64_t threads, uint64_t stamps) {
  enum { LINES_MAX = 16 };
  pthread_t ids[LINES_MAX];
  churn_t churns[LINES_MAX];
  uint64_t i;
  if (lines > LINES_MAX) return -1;
  for (i = 0; i < lines; i++) {
    churns[i].threads = threads;
    churns[i].stamps = stamps;
    churns[i].first = i << 32;
    if (pthread_create(&ids[i], NULL, churn, &churns[i])) return -1;
  }
  for (i = 0; i < lines; i++) pthread_join(ids[i], NULL);
  return 0;
}

static long perform(int self, char *line) {
  char *rest = NULL;
  const char *word = strtok_r(line, " ", &rest);
  const char *a = strtok_r(NULL, " ", &rest);
  const char *b = strtok_r(NULL, " ", &rest);
  const char *c = strtok_r(NULL, " ", &rest);
  uint64_t i, n;
  if (!word) return -1;
  if (!a) a = "";
  if (!b) b = "";
  n = strtoull(a, NULL, 10);
  if (!strcmp(word, "stamp")) {
    taut_stamp(taut_point(a), strtoull(b, NULL, 10));
  } else if (!strcmp(word, "stamp_at")) {
    taut_stamp_at(taut_point(a), strtoull(b, NULL, 10), c ? strtoull(c, NULL, 10) : 0);
  } else if (!strcmp(word, "site_at")) {
    TAUT_STAMP_AT("site", n, strtoull(b, NULL, 10));
  } else if (!strcmp(word, "many")) {
    const uint32_t point = taut_point(a);
    const uint64_t first = strtoull(b, NULL, 10), count = c ? strtoull(c, NULL, 10) : 0;
    for (i = first; i < first + count; i++) taut_stamp(point, i);
  } else if (!strcmp(word, "churn")) {
    return churn_all(n, strtoull(b, NULL, 10), c ? strtoull(c, NULL, 10) : 0);
  } else if (!strcmp(word, "site")) {
    TAUT_STAMP("site", n);
  } else if (!strcmp(word, "elsewhere")) {
    stamp_elsewhere(n);
  } else if (!strcmp(word, "linked")) {
    stamp_in_linked_object(n);
  } else if (!strcmp(word, "plugin")) {
    return call_plugin(a, strtoull(b, NULL, 10));
  } else if (!strcmp(word, "begin")) {
    TAUT_BEGIN("work");
  } else if (!strcmp(word, "end")) {
    TAUT_END("work");
  } else if (!strcmp(word, "value")) {
    TAUT_VALUE("signal", strtod(a, NULL));
  } else if (!strcmp(word, "lock_wait")) {
    TAUT_LOCK_WAIT("lock");
  } else if (!strcmp(word, "lock_acquired")) {
    TAUT_LOCK_ACQUIRED("lock");
  } else if (!strcmp(word, "name_mutex")) {
    TAUT_NAME_LOCK(a, &a_mutex);
    return (long)(intptr_t)&a_mutex;
  } else if (!strcmp(word, "name_word")) {
    TAUT_NAME_LOCK(a, &a_futex_word);
    return (long)(intptr_t)&a_futex_word;
  } else if (!strcmp(word, "mutex_bytes")) {
    return (long)sizeof a_mutex;
  } else if (!strcmp(word, "drop")) {
    TAUT_DROP(n, "site.reason");
  } else if (!strcmp(word, "outcome")) {
    taut_outcome(n, b);
  } else if (!strcmp(word, "applied")) {
    taut_applied(n);
  } else if (!strcmp(word, "prepare")) {
    return taut_prepare_thread();
  } else if (!strcmp(word, "attached")) {
    return taut_attached();
  } else if (!strcmp(word, "attach")) {
    return taut_attach(*a ? a : NULL);
  } else if (!strcmp(word, "lost")) {
    return (long)taut_lost();
  } else if (!strcmp(word, "errno")) { /* the same stamp, and whether errno outlived it */
    errno = 77;
    TAUT_STAMP("site", n);
    return errno;
  } else if (!strcmp(word, "alarm_each")) { /* so many microseconds a signal */
    struct sigaction action;
    struct itimerval timer;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore_signal;
    action.sa_flags = SA_RESTART;
    timer.it_interval.tv_sec = timer.it_value.tv_sec = 0;
    timer.it_interval.tv_usec = timer.it_value.tv_usec = (suseconds_t)n;
    return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL);
  } else if (!strcmp(word, "lock_memory")) {
    return mlockall(MCL_CURRENT | MCL_FUTURE);
  } else if (!strcmp(word, "limit_files")) {
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = n;
    return setrlimit(RLIMIT_FSIZE, &limit);
  } else if (!strcmp(word, "close_all")) { /* what a daemon does; then the robot's own file takes the number */
    int fd;
    for (fd = 3; fd < 64; fd++) close(fd);
    return open(a, O_CREAT | O_RDWR | O_TRUNC, 0600);
  } else if (!strcmp(word, "fork")) {
    return in_child(self, fork());
  } else if (!strcmp(word, "clone")) {
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) taut_after_fork();
    return in_child(self, child);
  } else if (!strcmp(word, "fork_and_end_thread")) { /* the child's only thread ends like a thread, unstamped */
    const pid_t child = fork();
    int status = 0;
    if (child == 0) pthread_exit(NULL);
    waitpid(child, &status, 0);
    return status;
  } else if (!strcmp(word, "exec")) {
    answer(0);
    execv("/proc/self/exe", arguments);
    return -1;
  } else {
    return -2;
  }
  return 0;
}

static void *work(void *argument) {
  worker_t *worker = (worker_t *)argument;
  const int self = (int)(worker - workers);
  pthread_mutex_lock(&mutex);
  for (;;) {
    char line[LINE_MAX_BYTES];
    while (!worker->has_line) pthread_cond_wait(&changed, &mutex);
    memcpy(line, worker->line, sizeof line);
    worker->has_line = 0;
    if (!strcmp(line, "join")) break;
    pthread_mutex_unlock(&mutex);
    answer(perform(self, line));
    pthread_mutex_lock(&mutex);
    worker->is_done = 1;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void give(worker_t *worker, const char *line, int wait_for_it) {
  pthread_mutex_lock(&mutex);
  snprintf(worker->line, sizeof worker->line, "%s", line);
  worker->is_done = 0;
  worker->has_line = 1;
  pthread_cond_broadcast(&changed);
  while (wait_for_it && !worker->is_done) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void interpret(int self) {
  char line[LINE_MAX_BYTES];
  while (read_line(line)) {
    char *words = NULL;
    const long who = strtol(line, &words, 10);
    worker_t *worker;
    if (who < 0 || who >= THREADS_MAX || *words != ' ') _exit(4);
    words++;
    worker = &workers[who];
    if (!strcmp(words, "exit")) {
      answer(0);
      return;
    } else if (!strcmp(words, "thread")) {
      answer(pthread_create(&worker->thread, NULL, work, worker));
    } else if (!strcmp(words, "join")) {
      give(worker, words, 0);
      answer(pthread_join(worker->thread, NULL));
    } else if (who == self) {
      answer(perform(self, words));
    } else {
      give(worker, words, 1);
    }
  }
}

int main(int count, char **values) {
  (void)count;
  arguments = values;
  interpret(0);
  return 0;
}
