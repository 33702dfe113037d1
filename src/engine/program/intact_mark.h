// Intact mark: records that a file was found whole, so that its bytes need not be
// hashed each time it is opened.
//
// The mark is an extended attribute that names the file's size and time of last
// modification: writing to the file, or copying it, invalidates it. It does not detect
// damage beneath the file system; `touch FILE` invalidates it.
#ifndef FOLIOT_ENGINE_PROGRAM_INTACT_MARK_H_
#define FOLIOT_ENGINE_PROGRAM_INTACT_MARK_H_

#include <sys/stat.h>

#include "engine/program/file.h"

namespace foliot {

// `status` is the file's, taken before its bytes were written to or looked at for
// the last time.
bool is_marked_intact(const File& file, const struct stat& status);

// Does nothing where the file system keeps no such attributes or this process may
// not write to the file: then it will be hashed again.
void mark_intact(const File& file, const struct stat& status);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_INTACT_MARK_H_
