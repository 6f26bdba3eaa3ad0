/* Preloaded into programs: one sync to the disk in so many waits for some seconds before it is done.
 *
 * SYNC_STALLS is "ONE_IN:MILLISECONDS"; tests that start servers take away variables whose names begin with CORRAL_.
 * Only programs that call the C library are reached, such as Python, SQLite and PostgreSQL; Go's programs are not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void stall_by_chance(void) {
    static __thread unsigned seed = 0;
    const char *said = getenv("SYNC_STALLS");
    unsigned one_in = 0, milliseconds = 0;
    if (said == NULL || sscanf(said, "%u:%u", &one_in, &milliseconds) != 2 || one_in == 0)
        return;
    if (seed == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = (unsigned)now.tv_nsec ^ (unsigned)getpid() * 2654435761u;
    }
    if ((unsigned)rand_r(&seed) % one_in == 0) {
        struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
        nanosleep(&pause, NULL);
    }
}

int fsync(int file) {
    stall_by_chance();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    stall_by_chance();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
