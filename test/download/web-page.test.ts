import { expect, it } from 'vitest'
import { into } from './breaking-host.js'
import { contents, createWork, newFolder, output, serve } from './download-setup.js'

it('a web page in place of a picture is no output', async () => {
  const folder = newFolder()
  const portal = await serve((_, response) =>
    response
      .setHeader('content-type', 'text/html; charset=utf-8')
      .end('<!doctype html><title>Sign in</title>'),
  )
  const [result] = await createWork().download([output(portal)], into(folder))
  expect(result).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/a web page instead of the image/) },
  })
  expect(contents(folder)).toEqual([])
  expect(await createWork().download([output(portal, { kind: 'model' })], into(folder))).toMatchObject([
    { ok: true },
  ])
})
