// download(): an object as a file, resumed and verified.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_DOWNLOAD_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_DOWNLOAD_H_

#include "foundation/base/status.h"
#include "foundation/objectstore/object_store.h"

namespace foliot {

// Makes the open file `file` the content of `object`. What is in it already counts as the beginning of the object, as
// an earlier call left it. A connection that breaks is resumed as long as bytes come; kFruitlessMax times in a row
// without one it ends. What does not match the ETag is loaded anew, kDamagedMax times in all.
//
// True: the bytes are those of the ETag. False: that says nothing of the content, and only the length was checked.
// Errors: those of ObjectStore; kResourceExhausted: the disk is full; kUnavailable: damaged each time. Blocks; any
// thread.
inline constexpr int kFruitlessMax = 3;
inline constexpr int kDamagedMax = 3;
Result<bool> download(ObjectStore& store, const StoredObject& object, int file);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_DOWNLOAD_H_
