/** Used in the project `postgres`: makes the manual clock wait for queries, which are not visible in the event loop. */
import pg from 'pg'
import { countWork } from '../clock.js'

type Method = (this: pg.Client, ...args: unknown[]) => unknown

for (const name of ['connect', 'query', 'end'] as const) {
  const original = pg.Client.prototype[name] as Method
  const counting: Method = function (...args) {
    const done = countWork()
    const callback = args.at(-1)
    if (typeof callback !== 'function') {
      const answer = original.apply(this, args) as Promise<unknown>
      answer.then(done, done)
      return answer
    }
    // Called by the pool, with a callback.
    return original.call(this, ...args.slice(0, -1), (...results: unknown[]) => {
      done()
      callback(...results)
    })
  }
  pg.Client.prototype[name] = counting as never
}
