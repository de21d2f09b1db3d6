/** `rushes serve --database`: nodes as processes on a real PostgreSQL, which also goes away. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  bash,
  createPlace,
  type Place,
  processesOf,
  rushes,
  type Service,
  serve,
  start,
} from '../support/binary.js'
import {
  canRestartPostgres,
  describePostgres,
  sharedPostgres,
  temporaryDatabase,
} from '../support/postgres.js'
import { onePixel } from '../support/quick-service.js'
import { until } from '../support/until.js'

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

const statusOf = async (place: Place, id: string): Promise<string> =>
  (await rushes(place, ['status', id])).stdout.split('\t')[1] ?? ''

describePostgres('serve --database', () => {
  it('prints the key only on the first start', async () => {
    const place = createPlace()
    const database = await newDatabase()
    const words = ['serve', '--port', '0', '--database', database]
    const first = start(place, words, { stdin: 'ignore' })
    await first.prints('stderr', /shown only once/)
    // The two pipes may be read in any order.
    await first.prints('stdout', /VIDEO_MODEL=.*\n/)
    expect(first.printed.stdout).toMatch(
      /^export RUSHES_BASE_URL=http:\S+\nexport RUSHES_API_KEY=\S+\nexport RUSHES_IMAGE_MODEL=\S+\nexport RUSHES_VIDEO_MODEL=\S+\n$/,
    )
    const { hostname, port, pathname } = new URL(database)
    expect(first.printed.stderr).toContain(`Database: postgres://${hostname}:${port}${pathname}\n`)
    const ran = await bash(createPlace(), `${first.printed.stdout}rushes run image "a fox" -q -o fox.png`)
    expect(ran).toMatchObject({ code: 0, stdout: 'fox.png\n', stderr: '' })
    first.kill('SIGTERM')
    expect(await first.ended).toMatchObject({ code: 0 })

    const second = start(place, words, { stdin: 'ignore' })
    await second.prints('stderr', /rushes admin key create --account default --database <url>`\.\n/)
    await second.prints('stdout', /VIDEO_MODEL=.*\n/)
    expect(second.printed.stdout.match(/^export \w+/gm)).toEqual([
      'export RUSHES_BASE_URL',
      'export RUSHES_IMAGE_MODEL',
      'export RUSHES_VIDEO_MODEL',
    ])
    const made = await bash(
      place.with({ RUSHES_DATABASE_URL: database }),
      `${second.printed.stdout}export RUSHES_API_KEY=$(rushes admin key create --account default -q)
      rushes run image "a fox" -q`,
    )
    expect(made).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^http\S+\n$/) })
    second.kill('SIGTERM')
    for (const { stdout, stderr } of [await first.ended, await second.ended])
      expect(stdout + stderr).not.toContain('s3cret')
  })

  it('works as one service on an API node and a worker', async () => {
    const place = createPlace()
    const database = await newDatabase()
    const worker = await node(place, database, '--role', 'worker')
    expect(worker.apiKey).toBe('')
    const api = await node(place, database, '--role', 'api')
    const { code, stdout } = await rushes(api, ['run', 'image', 'a fox'])
    expect(code).toBe(0)
    expect((await fetch(stdout.trim())).headers.get('content-type')).toBe('image/png')
    const [url] = stdout.split('\n')
    expect(url).toMatch(new RegExp(`^${api.url}/outputs/`))
    expect((await fetch(`${worker.url}/api/v1/runs`, { method: 'POST' })).status).toBe(404)
    for (const { url } of [api, worker]) expect((await fetch(`${url}/readyz`)).status).toBe(200)
    await ends(worker)
    await ends(api)
  })

  it('counts the requests of a key on all nodes together', async () => {
    const place = createPlace()
    const database = await newDatabase()
    const one = await node(place, database)
    const two = await node(place, database)
    const ask = async ({ url }: Service) =>
      (await fetch(`${url}/api/v1/runs/run_x`, { headers: { authorization: `Bearer ${one.apiKey}` } })).status
    const statuses = await Promise.all(Array.from({ length: 40 }, (_, at) => ask(at % 2 === 0 ? one : two)))
    expect(statuses.filter((status) => status === 404)).toHaveLength(20)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  })

  it('returns the run of a worker that ends to the queue, and another worker renders it', async () => {
    const place = createPlace()
    const database = await newDatabase()
    const api = await node(place, database, '--role', 'api')
    const slow = await node(place, database, '--role', 'worker', '--engine', 'image=sleep 60')
    const { stdout } = await rushes(api, ['run', 'image', 'a fox', '--no-wait'])
    const id = stdout.trim()
    await until('the render', async () => (await statusOf(api, id)) === 'processing' || undefined)
    await ends(slow)
    expect(await statusOf(api, id)).toBe('queued')
    await node(place, database, '--role', 'worker')
    expect((await rushes(api, ['wait', id])).code).toBe(0)
    const list = await rushes(place.with({ RUSHES_DATABASE_URL: database }), [
      'admin',
      'credits',
      'list',
      'default',
    ])
    expect(list.stdout.match(/\tcharge\t/g)).toHaveLength(1)
    expect(list.stdout).not.toContain('refund')
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
