import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/service.js'
import { shell, start } from '../support/started.js'

/** The processes whose parent is `pid`, or that render for nobody. */
const renderers = (): readonly string[] =>
  execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes('dist/renderer.js'))

async function until(what: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!what()) {
    if (performance.now() > deadline) throw new Error('it did not come to be')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

describe('--local', () => {
  it('makes a real picture of the size that was asked for', async () => {
    const { home, ended } = start([
      'run',
      'image',
      '--local',
      '--aspect-ratio',
      '16:9',
      'a red fox in fresh snow',
    ])
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_\w+\.png\n$/)
    const bytes = readFileSync(join(home, stdout.trim()))
    expect(bytes.subarray(1, 4).toString()).toBe('PNG')
    expect(bytes.readUInt32BE(16) / bytes.readUInt32BE(20)).toBeCloseTo(16 / 9, 1)
  })

  it('makes a real video, moov first', async () => {
    const { home, ended } = start(['run', 'video', '--local', 'a paper boat', '-o', 'boat.mp4'])
    expect(await ended).toMatchObject({ code: 0, stdout: 'boat.mp4\n' })
    const bytes = readFileSync(join(home, 'boat.mp4'))
    expect(bytes.subarray(4, 8).toString()).toBe('ftyp')
    expect(bytes.indexOf('moov')).toBeLessThan(bytes.indexOf('mdat'))
  })

  it('is killed in the middle, and wait goes on with the run', async () => {
    const first = start(['run', 'video', '--local', '--json', '--debug', 'a fox'])
    const said = await first.says(/GET \S+\/runs\/(run_\w+)/)
    const id = /runs\/(run_\w+)/.exec(said)?.[1] ?? ''
    first.child.kill('SIGKILL')
    expect((await first.ended).signal).toBe('SIGKILL')
    await until(() => renderers().every((line) => !line.includes(` ${first.child.pid} `)))
    const second = await start(['wait', '--local', id], { home: first.home }).ended
    expect(second).toMatchObject({ code: 0, stdout: `${id}.mp4\n` })
  })

  it('dies of Ctrl-C, says how to go on, and leaves neither a renderer nor a part of a file', async () => {
    const { child, home, says, ended } = start(['run', 'video', '--local', 'a fox'])
    await says(/processing|queued/)
    child.kill('SIGINT')
    const { signal, stdout, stderr } = await ended
    expect({ signal, stdout }).toEqual({ signal: 'SIGINT', stdout: '' })
    expect(stderr).toMatch(/rushes wait --local run_\w+/)
    expect(readdirSync(home).filter((name) => /part|mp4/.test(name))).toEqual([])
    await until(() => renderers().every((line) => !line.includes(` ${child.pid} `)))
  })

  it('keeps what --no-wait queued for a later wait', async () => {
    const home = temporaryFolder()
    const { stdout: id } = await start(['run', 'image', '--local', '--no-wait', 'a fox'], { home }).ended
    expect((await start(['status', '--local', id.trim()], { home }).ended).stdout).toBe(
      `${id.trim()}\tqueued\t\n`,
    )
    expect((await start(['wait', '--local', id.trim()], { home }).ended).stdout).toBe(`${id.trim()}.png\n`)
  })

  it('says what is wrong where nothing can be kept', async () => {
    const { code, stderr } = await start(['run', 'image', '--local', 'a fox'], {
      env: { RUSHES_STATE_DIR: '/dev/null/x' },
    }).ended
    expect(code).toBe(2)
    expect(stderr).not.toContain('    at ')
  })
})

describe('in a shell', () => {
  it('ends with 141 and without a word when nobody reads on', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a variable of bash
    const { ended } = shell('rushes models | true; echo "${PIPESTATUS[0]}"')
    expect(await ended).toMatchObject({ stdout: '141\n', stderr: '' })
  })

  it('says that a full disk has lost the answer', async () => {
    const { code, stderr } = await shell('rushes models > /dev/full').ended
    expect(code).toBe(12)
    expect(stderr).toContain('standard output could not be written')
  })

  it('serves, pipes an image into a video, and ends with 0 when it is told to', async () => {
    const service = start(['serve', '--port', '0', '--json'])
    const announced = JSON.parse((await service.says(/\n/)).split('\n')[0] ?? '')
    expect(announced).toMatchObject({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      api_key: expect.any(String),
    })
    const script = `
      set -euo pipefail
      rushes run image "a fox" | rushes run video "it runs" -i - --no-wait > id
      rushes status - < id | cut -f2
      rushes run image "a fox" -o - > fox.png
      head -c 4 fox.png | tail -c 3
    `
    const env = {
      RUSHES_BASE_URL: announced.url,
      RUSHES_API_KEY: announced.api_key,
      RUSHES_IMAGE_MODEL: 'rushes/preview-image',
      RUSHES_VIDEO_MODEL: 'rushes/preview-video',
    }
    const { code, stdout, stderr } = await shell(script, { env }).ended
    expect({ code, stderr: stderr.includes('error') }).toEqual({ code: 0, stderr: false })
    expect(stdout).toMatch(/^(queued|processing|succeeded)\nPNG$/)
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0, signal: null })
    const again = start(['serve', '--port', '0', '--json'], { home: service.home })
    expect(JSON.parse((await again.says(/\n/)).split('\n')[0] ?? '').api_key).toBeUndefined()
    again.child.kill('SIGINT')
    expect((await again.ended).code).toBe(0)
  })

  it('says that nothing was accepted when nobody is there', async () => {
    const env = { RUSHES_BASE_URL: 'http://127.0.0.1:9', RUSHES_API_KEY: 'k', RUSHES_IMAGE_MODEL: 'a/b' }
    const { code, stderr } = await shell('rushes run image fox', { env }).ended
    expect(code).toBe(9)
    expect(stderr).toContain('No run was created and nothing was paid.')
  })
})
