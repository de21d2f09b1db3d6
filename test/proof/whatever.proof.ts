/** `test/download/whatever.test.ts` with two thousand downloads, new ones each time; a failure prints its seed. */
process.env.DOWNLOADS = '2000'
await import('../download/whatever.test.js')
