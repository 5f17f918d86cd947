# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests that take minutes, most of them to compile: `make stress-flow` runs them (ctest -L long).
set(long flow-semantics-untraced flow-no-heap-punctual-flow-untraced flow-stress)
flow_test(flow-semantics-untraced punctual-flow-untraced ${semantics})
no_heap_test(punctual-flow-untraced)

# The symbols that uprobes attach to, with every compiler; and that no tracing code is left when it is off.
if(PUNCTUAL_FLOW_TRACE)
	add_test(NAME flow-symbols COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/symbols.sh
		${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/symbols
		$<TARGET_FILE:punctual-flow> $<TARGET_FILE:punctual-flow-untraced>)
	set_tests_properties(flow-symbols PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
	list(APPEND long flow-symbols)
endif()

# 10⁷ pushes with each of 1 to 8 executors: with fewer, rare cases would not occur.
add_executable(flow-stress stress.cpp)
target_link_libraries(flow-stress PRIVATE punctual-flow-untraced punctual-flow-warnings)
add_test(NAME flow-stress COMMAND flow-stress 10000000)
set_tests_properties(flow-stress PROPERTIES TIMEOUT 600)

# The same under ThreadSanitizer, to find races; and the semantics under the other two.
if(PUNCTUAL_FLOW_HAS_SANITIZERS)
	add_executable(flow-stress-tsan stress.cpp)
	target_link_libraries(flow-stress-tsan PRIVATE punctual-flow-tsan punctual-flow-warnings)
	add_test(NAME flow-stress-tsan COMMAND flow-stress-tsan 500000)
	# Fewer numbers of executors, each for longer.
	add_test(NAME flow-stress-tsan-longer COMMAND flow-stress-tsan 10000000 1 2 4 8)
	set_tests_properties(flow-stress-tsan PROPERTIES TIMEOUT 600)
	set_tests_properties(flow-stress-tsan-longer PROPERTIES TIMEOUT 3600)
	flow_sanitized(punctual-flow-asan -fsanitize=address,undefined -fno-sanitize-recover=all)
	flow_test(flow-semantics-asan punctual-flow-asan ${semantics})
	list(APPEND long flow-stress-tsan flow-stress-tsan-longer flow-semantics-asan)
endif()
set_tests_properties(${long} PROPERTIES LABELS long)
