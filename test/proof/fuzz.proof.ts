/** `test/service/fuzz.test.ts` with a thousand runs of each property, new ones each time; a failure prints its seed. */
process.env.FUZZ_RUNS = '1000'
await import('../service/fuzz.test.js')
