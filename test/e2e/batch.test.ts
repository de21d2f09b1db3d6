/** The real binary: a batch that is interrupted, killed, and continued. The long version of the kills is `test/proof/batch.proof.ts`. */
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sweepBatches } from '../support/batch-sweep.js'
import {
  BINARY,
  bash,
  createPlace,
  filesBelow,
  ONE_PIXEL_PNG,
  quoted,
  rushes,
  type Service,
  serve,
  start,
} from '../support/index.js'

const MANIFEST = `defaults: { kind: image }
runs:
  - { name: fox, prompt: a fox, output: assets/fox.png }
  - { name: hen, prompt: a hen }
`
const ONE_PIXEL = `echo ${ONE_PIXEL_PNG.toString('base64')} | base64 -d > "$RUSHES_OUTPUT_DIR/1.png"`

/** One service for the tests that follow each other here; its runs do not end while `holds`. */
let service: Service
let hold: string
beforeAll(async () => {
  const place = createPlace()
  hold = join(place.home, 'hold')
  const engine = `while [ -e ${quoted(hold)} ]; do sleep 0.05; done; ${ONE_PIXEL}`
  service = await serve(place, ['--engine', `image=${engine}`])
})
afterEach(() => rmSync(hold, { force: true }))

/** Another person with the key of the service, and a manifest in their folder. */
function createUser(manifest = MANIFEST) {
  const place = createPlace()
  writeFileSync(join(place.folder, 'shots.yaml'), manifest)
  return place.with({ ...service.env, HOME: place.home, PATH: place.env.PATH })
}

it('a batch locks its manifest across state folders, and pays for each row once', async () => {
  const user = createUser()
  writeFileSync(hold, '')
  const first = start(user, ['batch', 'shots.yaml'], { stdin: 'ignore' })
  await first.prints('stderr', /processing/)
  const elsewhere = user.with({ RUSHES_STATE_DIR: join(user.home, 'state-2') })
  const second = await rushes(elsewhere, ['batch', 'shots.yaml'])
  expect(second).toMatchObject({ code: 2, stdout: '' })
  expect(second.stderr).toContain('Another batch is running on this manifest; nothing was sent.')
  first.kill('SIGINT')
  expect((await first.ended).signal).toBe('SIGINT')
  rmSync(hold)
  // Another journal does not know what is in flight.
  expect(await rushes(elsewhere, ['batch', 'shots.yaml', '-q'])).toMatchObject({ code: 13 })
  expect(await rushes(user, ['batch', 'shots.yaml', '-q'])).toMatchObject({ code: 0 })
  expect(filesBelow(user.folder)).toEqual(['assets/fox.png', 'hen.png', 'shots.lock.json', 'shots.yaml'])
  const { stdout } = await rushes(service, ['admin', 'account', 'list', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ runs: 2 })
})

it('a batch loses no run and pays for none twice when it is killed', async () => {
  const { wrong } = await sweepBatches([450, 700], { outputs: 2, isOneInput: true })
  expect(wrong).toEqual([])
})

const canMount =
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /mnt']).status === 0

describe.skipIf(!canMount)('a batch on a read-only disk', () => {
  it('ends with 0 when everything is up to date, and otherwise with 2 before it sends a run', async () => {
    const { stdout, stderr } = await bash(
      createUser(),
      `mkdir disk; exec unshare -rm bash -c ${quoted(`mount -t tmpfs -o size=16m tmpfs disk && cp shots.yaml disk && cd disk || exit 99
       rushes batch shots.yaml -q >/dev/null; echo "made $?"
       mount -o remount,ro . || exit 99
       env -u RUSHES_API_KEY rushes batch shots.yaml >/dev/null 2>&1; echo "exit $?"
       rushes batch shots.yaml --force; echo "force $?"
       ls -A | tr '\\n' ' '`)}`,
    )
    expect(stdout).toBe('made 0\nexit 0\nforce 2\nassets hen.png shots.lock.json shots.yaml ')
    expect(stderr.match(/error:/g)).toHaveLength(1)
    expect(stderr).toMatch(
      /error: Cannot write the lock file shots\.lock\.json: read-only file system\. Nothing was sent\./,
    )
  })
})

const hasScript = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')

/** Neither uses the service above, and most of their time is waiting. */
describe.concurrent('a command that waits', () => {
  it.skipIf(!hasScript)('shows on a terminal when it is rate limited and retries', async () => {
    const limited = ['--fault', 'create:429:RATE_LIMITED:1', '--engine', `image=${ONE_PIXEL}`]
    const place = await serve(createPlace(), limited)
    const command = `stty cols 80 rows 24; exec ${quoted(process.execPath)} ${quoted(BINARY)} run image fox`
    const { code, stdout } = await start(
      place.with({ TERM: 'xterm-256color' }),
      ['-qec', command, '/dev/null'],
      { command: 'script' },
    ).ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/rate limited, retrying in [12] s/)
  })
})
