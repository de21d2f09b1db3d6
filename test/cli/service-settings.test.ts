/** Settings of a service: an address that was copied with the path of the interface, and the models. */
import { expect, it } from 'vitest'
import { parseBaseUrl } from '../../src/client/service-access.js'
import { createCliService, createHome, LOOPBACK_URL } from '../support/index.js'

it.each([
  ['https://a.example/api/v1', 'https://a.example'],
  ['https://a.example/api', 'https://a.example'],
  ['https://a.example/x/api/v1/runs', 'https://a.example/x'],
  ['https://a.example', 'https://a.example'],
  ['https://a.example/v1', 'https://a.example/v1'],
])('the path of the interface at the end of a service URL is left out of %s', async (address, used) => {
  expect(parseBaseUrl(address)).toBe(used)
  const { run } = createHome({ env: {} })
  const ran = await run(['config', 'set', 'baseUrl', address])
  expect(ran).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect((await run('config get baseUrl')).stdout).toBe(`${used}\n`)
})

it('the path of the interface at the end of a service URL does not keep a command from its service', async () => {
  const { run } = await createCliService()
  const env = { RUSHES_BASE_URL: `${LOOPBACK_URL}/api/v1/` }
  const made = await run('run image "a fox" --no-wait', { env })
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(await run(['status', made.stdout.trim()])).toMatchObject({ code: 0 })
})
