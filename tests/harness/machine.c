/* What a broker believes of its machine, as a library that is loaded before all others: a wall clock that jumps, and a
   journal of what reached the disk.

   $PYLOG_TEST_MACHINE is a folder with the file "clock", nanoseconds that are added to the wall clock (a native int64, read
   at every call), and gets the file "synced", a line "inode bytes" for every file that fsync or fdatasync has returned for:
   so many bytes of it survive a loss of power; and the file "named", a line "inode name" for every name that was in a folder
   when fsync has returned for that. Monotonic clocks are the kernel's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t *shift;
static int journal = -1;
static int names = -1;

static int in_folder(const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("PYLOG_TEST_MACHINE"), name);
    int file = open(path, flags | O_CLOEXEC, 0644);
    if (file < 0) {
        perror(path);
        abort();
    }
    return file;
}

__attribute__((constructor)) static void begin(void) {
    int clock = in_folder("clock", O_RDONLY);
    void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, clock, 0);
    close(clock);
    if (page == MAP_FAILED) {
        perror("clock");
        abort();
    }
    shift = page;
    journal = in_folder("synced", O_WRONLY | O_APPEND | O_CREAT);
    names = in_folder("named", O_WRONLY | O_APPEND | O_CREAT);
}

static int64_t wall_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND + now.tv_nsec + (shift ? *shift : 0);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, now);
    int64_t ns = wall_ns();
    now->tv_sec = ns / SECOND;
    now->tv_nsec = ns % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    int64_t ns = wall_ns();
    now->tv_sec = ns / SECOND;
    now->tv_usec = ns % SECOND / 1000;
    return 0;
}

time_t time(time_t *now) {
    time_t seconds = wall_ns() / SECOND;
    if (now)
        *now = seconds;
    return seconds;
}

static void note_names(DIR *folder, ino_t inode) {
    for (struct dirent *each; (each = readdir(folder));)
        dprintf(names, "%ju %s\n", (uintmax_t)inode, each->d_name);
}

/* What was written before the call is what the call makes durable; names that appear meanwhile count as well. */
static int synced(long number, int file) {
    struct stat before;
    int known = fstat(file, &before) == 0;
    int result = (int)syscall(number, file);
    if (result != 0 || !known)
        return result;
    if (S_ISREG(before.st_mode) && journal >= 0)
        dprintf(journal, "%ju %jd\n", (uintmax_t)before.st_ino, (intmax_t)before.st_size);
    if (S_ISDIR(before.st_mode) && names >= 0) {
        int again = openat(file, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = again < 0 ? NULL : fdopendir(again);
        if (folder) {
            note_names(folder, before.st_ino);
            closedir(folder);
        }
    }
    return result;
}

int fsync(int file) { return synced(SYS_fsync, file); }

int fdatasync(int file) { return synced(SYS_fdatasync, file); }
