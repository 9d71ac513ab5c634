rhizome_layer(cache
  MODULES policy pool lists layout disk_cache kernels job tables feed blocks full_graph ranges ranks
  DESCRIPTION "caches, minibatches, kernels, plans of full-graph training, ranks"
  USES storage index
  BATCH 8
  PRIVATE_LIBS TBB::tbb Boost::headers fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
# One set of kernels per vector width, chosen at run time (cache/kernels/simd.h). Multiplications and additions
# are fused only where the code says so, so that all sets produce the same bits.
set(kernels cache/kernels/aggregate_portable.cc)
set_source_files_properties(cache/kernels/aggregate_portable.cc PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND kernels cache/kernels/aggregate_avx2.cc cache/kernels/aggregate_avx512.cc)
  set_source_files_properties(cache/kernels/aggregate_avx2.cc PROPERTIES
    COMPILE_OPTIONS "-mavx2;-mf16c;-mfma;-ffp-contract=off")
  # GCC 12 takes the undefined operands of its own intrinsics for mistakes (its bug 105593).
  set_source_files_properties(cache/kernels/aggregate_avx512.cc PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512vl;-ffp-contract=off;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
endif()
set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
