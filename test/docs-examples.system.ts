/**
 * Runs the shell examples of README.md and docs/ that need a shell, as they are written, against the local service. Each must end with 0 under
 * `set -euo pipefail`. Videos come from an engine that copies a file; the renderer has its own tests. The others: docs-examples.test.ts.
 */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { bash, createPlace, type Place, quoted, type Service, serve, start } from './support/binary.js'
import { EXAMPLES, isPlain, withId } from './support/docs-examples.js'
import { personAt } from './support/quick-service.js'

/** Other programs, which may not be installed. */
const STAND_INS: Readonly<Record<string, string>> = {
  // In a clone, npx finds the program itself.
  npx: 'exec "$@"',
  fortune: 'echo a fox in a library',
  // Reads an image from standard input; its last argument is the result.
  magick: 'for result; do :; done; cat > "$result"; head -c 4 "$result" | grep -q PNG',
}

/** The service of an example listens on a free port, because 7878 may be in use, and records its process id for the test to stop it. */
const SERVE = '[ "$1" != serve ] || { shift; echo $$ > "$HOME/serve.pid"; set -- serve --port 0 "$@"; }'

/** Whether the script ends with a service in the foreground. */
const serves = (script: string): boolean => /^([A-Z_]+=\S+ )*rushes serve\b(?!.*&$)/m.test(script)

let service: Service

beforeAll(async () => {
  const place = createPlace()
  const film = join(place.home, 'film.mp4')
  writeFileSync(film, Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isomiso2', 'latin1'))
  const models = ['image=acme/still-1', 'video=acme/cinema-1'].flatMap((name) => ['--model-name', name])
  service = await serve(place, [...models, '--engine', `video=cp ${quoted(film)} "$RUSHES_OUTPUT_DIR"`])
})

describe.concurrent('the shell examples', () => {
  const examples = EXAMPLES.filter((example) => !isPlain(example))
  test.each(examples.map((example) => [example.title, example] as const))('%s', async (_, example) => {
    const { files = {}, isNewUser = false, before = 'true', asks = 'true', prints = /^/ } = example
    const { place, key } = await placeFor(isNewUser)
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(place.folder, name), bytes)
    const { stdout: printed } = await bash(place, before)
    let last = ''
    for (const script of example.scripts) {
      const ended = await run(place, withId(script, printed), {
        typed: isNewUser ? `${key}\n` : undefined,
        asks,
      })
      expect(ended.code, `${script}\n${ended.stdout}\n${ended.stderr}`).toBe(0)
      expect(ended.stderr).not.toMatch(/^warning: /m)
      last = ended.stdout
    }
    expect(last).toMatch(prints)
  })
})

test('fail the test if one fails in the middle', async () => {
  expect((await run(createPlace(), 'rushes run image\necho done')).code).toBe(2)
  expect((await run(createPlace(), 'false | cat\necho done')).code).toBe(1)
})

/** A user with a home, a folder and an API key, so that the examples do not share a rate limit. */
async function placeFor(isNewUser: boolean): Promise<{ readonly place: Place; readonly key: string }> {
  const place = await personAt(service)
  const key = place.env.RUSHES_API_KEY ?? ''
  const bin = join(place.home, 'bin')
  mkdirSync(bin)
  const [, ours = ''] = readFileSync(join(place.home, '..', 'bin', 'rushes'), 'utf8').split('\n')
  for (const [name, text] of Object.entries({ ...STAND_INS, rushes: `${SERVE}\n${ours}` })) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const settings = isNewUser
    ? {
        ...{ RUSHES_BASE_URL: undefined, RUSHES_API_KEY: undefined },
        ...{ RUSHES_IMAGE_MODEL: undefined, RUSHES_VIDEO_MODEL: undefined },
      }
    : { RUSHES_IMAGE_MODEL: 'acme/still-1', RUSHES_VIDEO_MODEL: 'acme/cinema-1' }
  return { place: place.with({ PATH: `${bin}:${place.env.PATH}`, ...settings }), key }
}

interface RunOptions {
  readonly typed?: string | undefined
  readonly asks?: string
}

/** Runs one block, with the URL of the service in place of the URL in the docs. */
async function run(place: Place, script: string, { typed, asks = 'true' }: RunOptions = {}) {
  const text = `set -euo pipefail\n${script.replaceAll('https://api.example.com', service.url)}`
  if (!serves(script))
    return typed === undefined
      ? bash(place, text)
      : start(place, ['-c', text], { command: 'bash', stdin: typed }).ended
  const running = start(place, ['-c', text], { command: 'bash', stdin: 'ignore' })
  await running.prints(
    'stdout',
    /^export RUSHES_BASE_URL=http:\/\/127\.0\.0\.1:\d+\nexport RUSHES_API_KEY=\S+$/m,
  )
  const asked = await bash(place, `set -e\n${running.printed.stdout}${asks}`)
  expect(asked.code, asked.stderr).toBe(0)
  process.kill(Number(readFileSync(join(place.home, 'serve.pid'), 'utf8')), 'SIGTERM')
  return running.ended
}
