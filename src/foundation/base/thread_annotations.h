// Annotations that say which mutex guards what. clang checks them when it compiles (-Wthread-safety);
// other compilers ignore them.
//
//   GUARDED_BY(m)      after a member: m is held exclusively where it is written, at least shared where it is read.
//   PT_GUARDED_BY(m)   after a pointer: the same of what it points to.
//   REQUIRES(m)        after a function: its caller holds m, before and after.
//   REQUIRES_SHARED(m) likewise, at least shared.
//   EXCLUDES(m)        after a function: its caller does not hold m.
//   RELEASES(m), ACQUIRES(m)   after a function: it unlocks what its caller holds, or locks it for its caller.
//
// What clang cannot see: it takes `m` as it is written, so two names of one mutex are two mutexes. Constructors and
// destructors are not checked, since no other thread may use the object then; nor is what a function returns by
// reference. A lambda is a function of its own, which needs its own REQUIRES between parameters and body.
#ifndef FOLIOT_FOUNDATION_BASE_THREAD_ANNOTATIONS_H_
#define FOLIOT_FOUNDATION_BASE_THREAD_ANNOTATIONS_H_

#ifdef __clang__
#define FOLIOT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define FOLIOT_THREAD_ANNOTATION(x)
#endif

// A header of Abseil, which gRPC includes, defines these alike.
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS

#define GUARDED_BY(...) FOLIOT_THREAD_ANNOTATION(guarded_by(__VA_ARGS__))
#define PT_GUARDED_BY(...) FOLIOT_THREAD_ANNOTATION(pt_guarded_by(__VA_ARGS__))
#define REQUIRES(...) FOLIOT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) FOLIOT_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) FOLIOT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRES(...) FOLIOT_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASES(...) FOLIOT_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS FOLIOT_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif  // FOLIOT_FOUNDATION_BASE_THREAD_ANNOTATIONS_H_
