/** What needs ffmpeg: the first frame of a video in the terminal. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { drawPicture, findFfmpeg } from '../../src/preview/terminal-picture.js'
import { createCliService, createInstantEngine, temporaryFolder } from '../support/index.js'
import { tinyVideo } from '../support/tiny-video.js'

const PATH = process.env.PATH ?? ''

describe.skipIf(findFfmpeg(PATH) === undefined)('with ffmpeg', () => {
  const show = async (bytes: Uint8Array) => {
    const engine = createInstantEngine({ bytes, files: ['film.mp4'], contentType: 'video/mp4' })
    const service = await createCliService({ engine })
    return service.run(['run', 'video', 'fox', '-o', join(temporaryFolder(), 'a: fox.mp4'), '--show'], {
      tty: { stdout: true, stderr: true },
      columns: 0,
      drawPicture: (request) => drawPicture(request, PATH),
      env: { NO_COLOR: '', CI: '', TERM: 'tmux-256color', COLORTERM: 'truecolor' },
    })
  }

  it('a video is drawn as its first frame', async () => {
    // 64 x 32 pixels, and the first frame is black.
    const { stderr } = await show(await tinyVideo(3))
    expect(stderr.match(/^\u001b\[38;2;(\d);\1;\1;48;2;\1;\1;\1m▀{48}\u001b\[0m$/gm)).toHaveLength(12)
  })

  it('a video that breaks off is not drawn, with a note', async () => {
    const { code, stderr } = await show((await tinyVideo(3)).subarray(0, 60))
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/a: fox\.mp4 is not drawn: ffmpeg cannot read it\.\n/),
    })
  })
})
