/** Settings of a service: an address that was copied with the path of the interface, and the models. */
import { describe, expect, it } from 'vitest'
import { parseBaseUrl } from '../../src/client/service-access.js'
import { createCliService, LOOPBACK_URL, runCli } from '../support/cli.js'
import { temporaryFolder } from '../support/temporary-folder.js'

describe('the path of the interface at the end of a service URL', () => {
  it.each([
    ['https://a.example/api/v1', 'https://a.example'],
    ['https://a.example/api', 'https://a.example'],
    ['https://a.example/x/api/v1/runs', 'https://a.example/x'],
    ['https://a.example', 'https://a.example'],
    ['https://a.example/v1', 'https://a.example/v1'],
  ])('is left out of %s', async (address, used) => {
    expect(parseBaseUrl(address)).toBe(used)
    const home = temporaryFolder()
    const ran = await runCli(['config', 'set', 'baseUrl', address], { home })
    expect(ran).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect((await runCli('config get baseUrl', { home })).stdout).toBe(`${used}\n`)
  })

  it('does not keep a command from its service', async () => {
    const { run } = await createCliService()
    const env = { RUSHES_BASE_URL: `${LOOPBACK_URL}/api/v1/` }
    const made = await run('run image "a fox" --no-wait', { env })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(await run(['status', made.stdout.trim()])).toMatchObject({ code: 0 })
  })
})
