/** `rushes serve --database`: nodes as processes on a real PostgreSQL, which also goes away. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  createPlace,
  onePixel,
  type Place,
  processesOf,
  rushes,
  type Service,
  serve,
  start,
  until,
} from '../support/index.js'
import {
  canRestartPostgres,
  describePostgres,
  sharedPostgres,
  temporaryDatabase,
} from '../support/postgres.js'

const ENGINE = /rushes-engine/

/** The tests' server lets everybody in, whatever the password; nothing may say it. */
const newDatabase = async (): Promise<string> =>
  Object.assign(new URL(await temporaryDatabase()), { password: 's3cret' }).href

/** Further nodes have the files of the first. */
const node = (place: Place, database: string, ...words: readonly string[]): Promise<Service> =>
  serve(place.with({ RUSHES_DATABASE_URL: database }), ['--data', join(place.home, 'data'), ...words])

async function ends({ process }: Service, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  process.kill(signal)
  expect(await process.ended).toMatchObject({ code: 0, signal: null })
}

describePostgres('serve --database', () => {
  // The lines of each start: serve.test.ts.
  it('prints the key only on the first start, and never the password of the database', async () => {
    const place = createPlace()
    const database = await newDatabase()
    const words = ['serve', '--port', '0', '--database', database]
    const begin = async (hint: RegExp) => {
      const running = start(place, words, { stdin: 'ignore' })
      await running.prints('stderr', hint)
      await running.prints('stdout', /VIDEO_MODEL=.*\n/)
      running.kill('SIGTERM')
      expect(await running.ended).toMatchObject({ code: 0 })
      expect(running.printed.stdout + running.printed.stderr).not.toContain('s3cret')
      return running.printed
    }
    const first = await begin(/shown only once/)
    expect(first.stdout).toContain('export RUSHES_API_KEY=')
    const { hostname, port, pathname } = new URL(database)
    expect(first.stderr).toContain(`Database: postgres://${hostname}:${port}${pathname}\n`)
    const second = await begin(/rushes admin key create --account default --database <url>`\.\n/)
    expect(second.stdout).not.toContain('RUSHES_API_KEY')
  })

  it.skipIf(!canRestartPostgres)(
    'ends with 0 but refuses to start while the database is unavailable',
    async () => {
      const place = createPlace()
      const database = await newDatabase()
      // A run carries its engine over a restart, so this one does the work once the file `ready` is there.
      const busy = await node(place, database, '--engine', `image=test -e ready || sleep 60; ${onePixel}`)
      const { stdout } = await rushes(busy, ['run', 'image', 'a fox', '--no-wait'])
      await until('the render', () => processesOf(place, ENGINE).length > 0 || undefined)
      const idle = await node(place, database, '--role', 'api')
      const server = await sharedPostgres()
      await server.halt()
      try {
        await Promise.all([ends(busy), ends(idle, 'SIGINT')])
        expect(processesOf(place, ENGINE)).toEqual([])
        const refused = await rushes(place, ['serve', '--port', '0', '--database', database])
        expect(refused).toMatchObject({ code: 2, stdout: '' })
        expect(refused.stderr).toMatch(/cannot be used: connection refused/)
        expect(refused.stderr).not.toContain('s3cret')
      } finally {
        await server.resume()
      }
      writeFileSync(join(place.folder, 'ready'), '')
      const again = await node(place, database)
      const known = again.with({ RUSHES_API_KEY: busy.apiKey })
      expect(await rushes(known, ['wait', '--base-url', again.url, stdout.trim()])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^http\S+\n$/),
      })
    },
  )
})
