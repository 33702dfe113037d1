// The environment that the C library reads before main().
//
// GLIBC_TUNABLES: huge pages for the heap. Of thousands of models a controller reads a little of
// each, all over its memory, and most of these reads would also miss the table of small pages.
#ifndef FOLIOT_APP_STARTUP_ENVIRONMENT_H_
#define FOLIOT_APP_STARTUP_ENVIRONMENT_H_

namespace foliot {

// This sets what the command has use for and is not set, and begins the program anew; it does
// not return then. REQUIRES: main() has just begun.
void set_startup_environment(int argc, char** argv);

}  // namespace foliot

#endif  // FOLIOT_APP_STARTUP_ENVIRONMENT_H_
