import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import type { RateLimiter } from '../../../src/service/rules/rate.js'
import { createDatabase, type PostgresDatabase } from '../../../src/service/store/postgres/database.js'
import { openSchema } from '../../../src/service/store/postgres/open-schema.js'
import { createPostgresRateLimiter } from '../../../src/service/store/postgres/rates.js'
import { DatabaseRetry, type Queries } from '../../../src/service/store/sql.js'
import { rateLimiterContract } from '../../contract/rate-limiter.js'
import { describePostgres, STILL_CLOCK, sharedPostgres } from '../../support/postgres.js'

const LIMIT = { requests: 20, windowMs: 10_000 }
/** Real time, which does not end during a test. */
const LONG = { requests: 20, windowMs: 3_600_000 }

const openDatabase = (url: string) =>
  createDatabase({ url, maxConnections: 4, retry: new DatabaseRetry(STILL_CLOCK) })

describePostgres('on PostgreSQL', () => {
  let url: string
  let database: PostgresDatabase
  beforeAll(async () => {
    url = await (await sharedPostgres()).createDatabase()
    await openSchema(url)
    database = openDatabase(url)
  })
  afterAll(async () => {
    await database.close()
    await (await sharedPostgres()).dropDatabase(url)
  })

  let opened = 0
  /** The statements read a clock that the test moves, in place of that of the server, and keys of their own. */
  function open() {
    const prefix = `${++opened}`
    let [nowMs, monotonicMs] = [1_000_000, 0]
    const onClock = ({ run }: Pick<Queries, 'run'>): Pick<Queries, 'run'> => ({
      run(text, values = {}) {
        const now = `to_timestamp(${nowMs}::numeric / 1000)`
        return run(text.replaceAll('clock_timestamp()', now), { ...values, key: `${prefix} ${values.key}` })
      },
    })
    const limiter = createPostgresRateLimiter(
      {
        ...database,
        ...onClock(database),
        repeatable: (work) => database.repeatable((queries) => work({ ...queries, ...onClock(queries) })),
      },
      { ...systemClock, monotonic: () => monotonicMs },
    )
    return {
      limiter,
      advance(ms: number) {
        nowMs += ms
        monotonicMs += ms
      },
      jump(ms: number) {
        nowMs += ms
      },
      keys: async () =>
        (await database.all('SELECT key FROM rates WHERE key LIKE :keys', { keys: `${prefix} %` })).map(
          ({ key }) => key,
        ),
    }
  }

  rateLimiterContract(open, { numRuns: 15 })

  const takeMany = async (limiters: readonly RateLimiter[], count: number, limit = LIMIT) => {
    const taken = await Promise.all(
      Array.from({ length: count }, (_, at) => limiters[at % limiters.length]?.take(['shared'], limit)),
    )
    return taken.filter((isFree) => isFree).length
  }

  test('nodes share the limit, measured by the clock of the database', async () => {
    const nodes = Array.from({ length: 3 }, () => openDatabase(url))
    const limiters = nodes.map((node) => createPostgresRateLimiter(node))
    expect(await takeMany(limiters, 300, LONG)).toBe(20)
    expect(await takeMany(limiters, 30, LONG)).toBe(0)
    await Promise.all(nodes.map((node) => node.close()))
  })

  test('a clock that is set back does not refuse requests for longer', async () => {
    const { limiter, jump, advance } = open()
    expect(await takeMany([limiter], 30)).toBe(20)
    jump(-3_600_000)
    expect(await takeMany([limiter], 30)).toBe(20)
    expect(await takeMany([limiter], 30)).toBe(0)
    advance(10_000)
    expect(await takeMany([limiter], 30)).toBe(20)
  })

  test('removes idle keys', async () => {
    const { limiter, advance, keys } = open()
    await limiter.take(['one'], LIMIT)
    advance(60_000)
    await limiter.take(['other'], LIMIT)
    await expect.poll(keys).toEqual([expect.stringContaining('other')])
  })
})
