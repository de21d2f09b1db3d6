/** `--open`: the opener of these tests only notes what it is given. */
import { describe, expect, it } from 'vitest'
import { createCliService, LOOPBACK_URL } from '../support/cli.js'
import { temporaryFolder } from '../support/service.js'

describe('--open', () => {
  it('opens the downloaded files', async () => {
    const { run } = await createCliService()
    const path = `${temporaryFolder()}/fox.png`
    const { code, opened } = await run(['run', 'image', 'a fox', '-o', path, '--open'])
    expect({ code, opened }).toEqual({ code: 0, opened: [path] })
  })

  it('opens the output URLs when nothing is downloaded', async () => {
    const { run } = await createCliService()
    const { code, stdout, opened } = await run(['run', 'image', 'a fox', '--open'])
    expect(opened).toEqual([expect.stringContaining(`${LOOPBACK_URL}/outputs/`)])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${opened[0]}\n` })
  })

  it('that fails is a warning: the file is there', async () => {
    const { run } = await createCliService()
    const path = `${temporaryFolder()}/fox.png`
    const { code, stdout, stderr } = await run(['run', 'image', 'a fox', '-q', '-o', path, '--open'], {
      openResult: async () => {
        throw new Error('xdg-open is not installed')
      },
    })
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${path}\n` })
    expect(stderr).toBe(`warning: ${path} could not be opened: xdg-open is not installed.\n`)
  })

  it('opens nothing unless it is given', async () => {
    const { run } = await createCliService()
    expect((await run(['run', 'image', 'a fox'])).opened).toEqual([])
  })
})
