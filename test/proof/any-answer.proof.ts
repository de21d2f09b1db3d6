/** `test/client/any-answer.test.ts` with three thousand answers to each request, new ones each time; a failure prints its seed. */
process.env.ANSWERS = '3000'
await import('../client/any-answer.test.js')
