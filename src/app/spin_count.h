// How long OpenMP's threads spin before they sleep, when an EXEC is over or they wait for each
// other. The runtime (libgomp) reads it from the environment before main(), and by default spins for
// milliseconds, on a core that another lane, or the front end, could use.
#ifndef FOLIOT_APP_SPIN_COUNT_H_
#define FOLIOT_APP_SPIN_COUNT_H_

namespace foliot {

// Sets the environment and begins the program anew with it, where the command runs models for
// clients and nothing there says how long to spin. Does not return then. REQUIRES: main() has
// just begun.
void limit_spinning(int argc, char** argv);

}  // namespace foliot

#endif  // FOLIOT_APP_SPIN_COUNT_H_
