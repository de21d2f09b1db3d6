import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Brand } from './brand.js'

/** A page without navigation: signing in. */
export function Centered({
  title,
  children,
}: {
  readonly title?: string
  readonly children?: ComponentChildren
}) {
  useEffect(() => {
    document.title = title === undefined ? 'rushes' : `${title} · rushes`
  }, [title])
  return (
    <main class="centered">
      <Brand />
      {children !== undefined && (
        <div class="centered-card">
          {title !== undefined && <h1>{title}</h1>}
          {children}
        </div>
      )}
    </main>
  )
}
