// RUN: fsdpq-opt %s --split-input-file --verify-diagnostics --kern-to-cuda

// expected-error@+1 {{[FSDPQ-0512] has no emission; run kern-prepare-emission first}}
kern.func @unprepared(%x: memref<?xf32>) grid(%i) {
}

// -----

// expected-error@+1 {{[FSDPQ-0513] has an emission of the unknown family 'columns'}}
kern.func @unknown(%x: memref<?xf32>) grid(%i)
    attributes {emission = #kern.emission<family = "columns", threads = 32, group = 32>} {
}

// -----

// expected-error@+1 {{[FSDPQ-0513] is no kernel of the family 'rope'}}
kern.func @no_rope(%x: memref<?xf32>) grid(%i)
    attributes {emission = #kern.emission<family = "rope", threads = 32, group = 32>} {
}
