// biome-ignore-all lint/suspicious/noTemplateCurlyInString: bash has placeholders of its own
/** In shell scripts: pipes that compose, streams that are closed, and a standard output that is full. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  bash,
  createPlace,
  filesBelow,
  personAt,
  rushes,
  type Service,
  serveQuickly,
  start,
} from '../support/index.js'

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

describe.concurrent('pipes', () => {
  it('turn an image into a video, and ids into files', async () => {
    const place = await personAt(service)
    const { code, stdout, stderr } = await bash(
      place,
      `set -euo pipefail
      rushes run image "a fox" -q | rushes run video "it runs" -i - --no-wait -q > video.id
      rushes run image -n 2 "an owl" --no-wait | rushes wait - -q -d
      printf 'a cat\\n' | rushes run image --prompt - -q -o - > cat.png`,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^run_\w+\.png\nrun_\w+\.png\n$/)
    const files = filesBelow(place.folder).filter((name) => name.endsWith('.png'))
    expect(files).toHaveLength(3)
    for (const name of files) expect(readFileSync(join(place.folder, name), 'latin1').slice(1, 4)).toBe('PNG')
    const id = readFileSync(join(place.folder, 'video.id'), 'utf8').trim()
    const answer = await fetch(`${service.url}/api/v1/runs/${id}`, {
      headers: { authorization: `Bearer ${place.env.RUSHES_API_KEY}` },
    })
    expect(await answer.json()).toMatchObject({
      model: 'rushes/preview-video',
      input: { prompt: 'it runs', image_urls: [expect.stringMatching(/^http.*\/outputs\//)] },
    })
  })

  it('send nothing when their left side fails', async () => {
    const { code, stdout, stderr } = await bash(
      await personAt(service),
      'rushes run image | rushes run video "it runs" -i - --no-wait; echo "${PIPESTATUS[*]}"',
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: '2 2\n' })
    expect(stderr).toContain('Nothing was sent')
  })
})

describe.concurrent('a closed pipe', () => {
  it.each([[['--version']], [['models', '--json']]])('%j: 141, without a word', async (words) => {
    const child = start(createPlace(), words, { stdin: 'ignore' })
    child.stdout.destroy()
    expect(await child.ended).toMatchObject({ code: 141, stdout: '', stderr: '' })
  })

  it('after a first answer, the runs that were accepted stay what they are', async () => {
    const place = await personAt(service)
    const reading = start(place, ['run', 'image', '-n', '12', 'fox', '--no-wait'], { stdin: 'ignore' })
    const [, id] = await reading.prints('stdout', /(run_\w+)\n/)
    reading.stdout.destroy()
    expect(await reading.ended).toMatchObject({ code: 141, stderr: '' })
    expect((await rushes(place, ['wait', id ?? ''])).code).toBe(0)
  })
})

describe.concurrent('standard streams', () => {
  it.each([
    ['standard error is a closed pipe: the answer is still given', 'fox 2> >(true)', '', 0],
    ['standard input and standard error are closed: a run needs neither', 'fox <&- 2>&-', '', 0],
    ['standard input is closed: a dash finds nothing', '--prompt - <&-', 'Nothing was sent', 2],
  ])('%s', async (_, words, says, exit) => {
    const script = `rushes run image -d ${words}; echo "exit $?"`
    const { stdout, stderr } = await bash(await personAt(service), script)
    expect(stdout).toMatch(exit === 0 ? /^run_\w+\.png\nexit 0\n$/ : /^exit 2\n$/)
    expect(stderr).toContain(says)
  })

  it.each(['--version', 'models', 'run image fox -o -'])(
    'standard output is a full disk: %s says so',
    async (words) => {
      const script = `rushes ${words} > /dev/full; echo "$?" >&2`
      const { stdout, stderr } = await bash(await personAt(service), script)
      expect(stdout).toBe('')
      expect(stderr).toContain('error: Cannot write standard output: no space left on the disk.\n')
      expect(stderr).toMatch(/\n12\n$/)
      expect(stderr).not.toMatch(/^\s+at /m)
    },
  )
})
