/** What needs ffmpeg: the first frame of a video in the terminal, and the command for a file with the wrong extension. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { kindOf, misnamed } from '../../src/download/file-kind.js'
import { drawPicture, findFfmpeg } from '../../src/preview/terminal-picture.js'
import { plainPicture } from '../preview/support/pictures.js'
import { createCliService } from '../support/cli.js'
import { createInstantEngine } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'
import { tinyVideo } from '../support/tiny-video.js'

const PATH = process.env.PATH ?? ''

describe.skipIf(findFfmpeg(PATH) === undefined)('with ffmpeg', () => {
  const show = async (bytes: Uint8Array) => {
    const engine = createInstantEngine({ bytes, files: ['film.mp4'], contentType: 'video/mp4' })
    const service = await createCliService({ engine })
    return service.run(['run', 'video', 'fox', '-o', join(temporaryFolder(), 'a: fox.mp4'), '--show'], {
      tty: { stdout: true, stderr: true },
      columns: 0,
      pictures: { draw: (request) => drawPicture(request, PATH) },
      env: { NO_COLOR: '', CI: '', TERM: 'tmux-256color', COLORTERM: 'truecolor' },
    })
  }

  it('a video is drawn by its first frame', async () => {
    // 64 x 32 pixels, and the first frame is black.
    const { stderr } = await show(await tinyVideo(3))
    expect(stderr.match(/^\u001b\[38;2;(\d);\1;\1;48;2;\1;\1;\1m▀{48}\u001b\[0m$/gm)).toHaveLength(12)
  })

  it('half a video is a note', async () => {
    const { code, stderr } = await show((await tinyVideo(3)).subarray(0, 60))
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/a: fox\.mp4 is not drawn: ffmpeg cannot read it\.\n/),
    })
  })

  it.each([
    ['webp', 'png', `it's a fox: 1.webp`],
    ['png', 'webp', '-fox.png'],
    ['jpg', 'png', 'fox.jpg'],
    ['png', 'jpg', 'fox.png'],
  ] as const)('a .%s of %s bytes is converted by the command in the warning', async (named, is, name) => {
    const folder = temporaryFolder()
    const bytes = await plainPicture('#ff8000', 32, 16)
      .toFormat(is === 'jpg' ? 'jpeg' : is)
      .toBuffer()
    writeFileSync(join(folder, name), bytes)
    const url = new URL('http://127.0.0.1/x')
    const warning = misnamed(name, await kindOf({ head: bytes, contentType: undefined, url })) ?? ''
    const [, command = ''] = /`(.*)`/.exec(warning) ?? []
    execFileSync('sh', ['-c', `${command} 2>&1`], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const converted = join(folder, name.replace(`.${named}`, `-converted.${named}`))
    expect(await sharp(converted).metadata()).toMatchObject({
      format: named === 'jpg' ? 'jpeg' : named,
      width: 32,
      height: 16,
    })
  })
})
