// biome-ignore-all lint/suspicious/noTemplateCurlyInString: bash has placeholders of its own
/** In shell scripts: pipes that compose, pipes that close, disks that are full. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bash, createPlace, filesBelow, rushes, serve, start } from '../support/binary.js'

describe.concurrent('pipes', () => {
  it('compose: an image becomes a video, ids become files', async () => {
    const place = await serve(createPlace())
    const { code, stdout, stderr } = await bash(
      place,
      `set -euo pipefail
      rushes run image "a fox" -q | rushes run video "it runs" -i - --no-wait -q > video.id
      rushes status - < video.id | cut -f 2
      rushes run image -n 2 "an owl" --no-wait | rushes wait - -q -d
      rushes run image "a hare" -q -o - > hare.png
      printf 'a cat\\n' | rushes run image --prompt - -q -o cat.png`,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^(queued|processing)\nrun_\w+\.png\nrun_\w+\.png\ncat\.png\n$/)
    const files = filesBelow(place.folder).filter((name) => name.endsWith('.png'))
    expect(files).toHaveLength(4)
    for (const name of files) expect(readFileSync(join(place.folder, name), 'latin1').slice(1, 4)).toBe('PNG')
    const id = readFileSync(join(place.folder, 'video.id'), 'utf8').trim()
    const answer = await fetch(`${place.url}/api/v1/runs/${id}`, {
      headers: { authorization: `Bearer ${place.apiKey}` },
    })
    expect(await answer.json()).toMatchObject({
      model: 'rushes/preview-video',
      input: { prompt: 'it runs', image_urls: [expect.stringMatching(/^http.*\/outputs\//)] },
    })
  })

  it('a path of --local goes on as a picture', async () => {
    const { code, stdout } = await bash(
      createPlace(),
      `set -o pipefail
      rushes run image --local -q "a fox" | rushes run video "it runs" -i - --dry-run --model a/b`,
    )
    expect(code).toBe(0)
    expect(JSON.parse(stdout).input.image_urls).toEqual([
      expect.stringMatching(/^data:image\/png;base64,iVBOR/),
    ])
  })

  it('a left side that fails sends nothing', async () => {
    const place = await serve(createPlace())
    const { code, stdout, stderr } = await bash(
      place,
      'rushes run image | rushes run video "it runs" -i - --no-wait; echo "${PIPESTATUS[*]}"',
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: '2 2\n' })
    expect(stderr).toContain('Nothing was sent')
  })
})

describe.concurrent('a closed pipe', () => {
  it('ends the program without a word, with 141', async () => {
    const { stdout, stderr } = await bash(
      createPlace(),
      'rushes run image --local -q fox | true; echo "${PIPESTATUS[0]}"; rushes models --json | true; echo "${PIPESTATUS[0]}"',
    )
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^141\n(141|0)\n$/)
  })

  it.each([
    [['--version']],
    [['--help']],
    [['models', '--json']],
    [['run', 'image', 'fox', '--dry-run', '--model', 'a/b']],
  ])('%j: 141', async (words) => {
    const child = start(createPlace(), words, { stdin: 'ignore' })
    child.stdout.destroy()
    expect(await child.ended).toMatchObject({ code: 141, stdout: '', stderr: '' })
  })

  it('after a first answer, the runs that were accepted stay what they are', async () => {
    const place = await serve(createPlace())
    const reading = start(place, ['run', 'image', '-n', '12', 'fox', '--no-wait'], { stdin: 'ignore' })
    const [, id] = await reading.says('stdout', /(run_\w+)\n/)
    reading.stdout.destroy()
    expect(await reading.ended).toMatchObject({ code: 141, stderr: '' })
    expect((await rushes(place, ['wait', id ?? ''])).code).toBe(0)
  })

  it('standard error may close: the answer is still given', async () => {
    const { stdout } = await bash(createPlace(), 'rushes run image --local fox 2> >(true); echo "$?"')
    expect(stdout).toMatch(/^run_\w+\.png\n0\n$/)
  })
})

describe.concurrent('a full disk', () => {
  it.each([
    '--version',
    '--help',
    'models',
    'models --json',
    'run image --local fox',
    'run image --local fox -o -',
  ])('%s > /dev/full says so', async (words) => {
    const { stdout, stderr } = await bash(createPlace(), `rushes ${words} > /dev/full; echo "$?" >&2`)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/ENOSPC|no space left/i)
    expect(stderr).toMatch(/\n12\n$/)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})
