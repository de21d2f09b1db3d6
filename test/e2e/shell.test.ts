/** In shell scripts: pipes that compose, streams that are closed, and a standard output that is full. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import {
  bash,
  createPlace,
  ONE_PIXEL_PNG,
  objects,
  overPort,
  personAt,
  runOf,
  type Service,
  serveQuickly,
  start,
} from '../support/index.js'

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

it.concurrent('a pipe takes a prompt to an image, and the bytes of the image to a video', async () => {
  const place = await personAt(service)
  const { code, stdout, stderr } = await bash(
    place,
    `set -euo pipefail
    printf 'a fox\\n' | rushes run image --prompt - -q -o - | tee fox.png | rushes run video "it runs" -i - --no-wait -q`,
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(readFileSync(join(place.folder, 'fox.png'))).toEqual(ONE_PIXEL_PNG)
  expect(await runOf(overPort(place), stdout.trim())).toMatchObject({
    model: 'rushes/preview-video',
    input: {
      prompt: 'it runs',
      image_urls: [{ bytes: ONE_PIXEL_PNG.byteLength, content_type: 'image/png' }],
    },
  })
})

it.concurrent('a warning of Node is JSON with --json', async () => {
  const unchecked = 'NODE_TLS_REJECT_UNAUTHORIZED=0 RUSHES_BASE_URL=https://127.0.0.1:1'
  const place = await personAt(service)
  const { stderr } = await bash(place, `${unchecked} rushes models --refresh --json`)
  const [first = {}] = objects(stderr)
  expect(first.warning?.message).toContain('NODE_TLS_REJECT_UNAUTHORIZED')
})

it.concurrent('--version ends without a word and with 141 when the pipe is closed', async () => {
  const child = start(createPlace(), ['--version'], { stdin: 'ignore' })
  child.stdout.destroy()
  expect(await child.ended).toMatchObject({ code: 141, stdout: '', stderr: '' })
})

it.concurrent('run ends without a word and with 141 when the pipe is closed after its first id', async () => {
  const words = ['run', 'image', '-n', '12', 'fox', '--no-wait']
  const reading = start(await personAt(service), words, { stdin: 'ignore' })
  await reading.prints('stdout', /run_\w+\n/)
  reading.stdout.destroy()
  expect(await reading.ended).toMatchObject({ code: 141, stderr: '' })
})

it.concurrent('run needs no standard input, and prints its answer when standard error is a closed pipe', async () => {
  const { code, stdout } = await bash(await personAt(service), 'rushes run image -d fox <&- 2> >(true)')
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^run_\w+\.png\n$/) })
})

it.concurrent.each([
  ['--version', /^error: Cannot write standard output: no space left on the disk\.$/m],
  [
    'run image fox -o -',
    /^error: Cannot write standard output: no space left on the disk\.\n.*`rushes list`/m,
  ],
  ['list --json', /^\{"error":\{"code":"download_failed","message":"Cannot write [^\n]*\}\}\n$/],
] as const)('%s says that standard output is a full disk, and ends with 12', async (words, said) => {
  const { code, stderr } = await bash(await personAt(service), `rushes ${words} > /dev/full`)
  expect(code).toBe(12)
  expect(stderr).toMatch(said)
  expect(stderr).not.toMatch(/^\s+at /m)
})
