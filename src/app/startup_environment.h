// The environment that the C library and OpenMP's runtime read before main().
//
// GOMP_SPINCOUNT: how long OpenMP's threads spin before they sleep, when an EXEC is over or they
// wait for each other. By default it is milliseconds, on a core that another lane, or the front end,
// could use.
//
// GLIBC_TUNABLES: huge pages for the heap. Of thousands of models a controller reads a little of
// each, all over its memory, and most of these reads would also miss the table of small pages.
#ifndef FOLIOT_APP_STARTUP_ENVIRONMENT_H_
#define FOLIOT_APP_STARTUP_ENVIRONMENT_H_

namespace foliot {

// Where the command has use for one of these that is not set, sets it and begins the program anew. Does
// not return then. REQUIRES: main() has just begun.
void set_startup_environment(int argc, char** argv);

}  // namespace foliot

#endif  // FOLIOT_APP_STARTUP_ENVIRONMENT_H_
