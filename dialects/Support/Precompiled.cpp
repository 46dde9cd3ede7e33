// Holds the precompiled header that the compiler's libraries share.
#include "dialects/Support/LLVM.h"
