// A source to hang the precompiled header on.
#include "tests/support/precompiled/precompiled.h"
