import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Brand } from './brand.js'

/** A page without navigation: signing in. Its title gets the focus when a step removes the element that had it. */
export function Centered({
  title,
  children,
}: {
  readonly title?: string
  readonly children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (document.activeElement === null || document.activeElement === document.body) heading.current?.focus()
  })
  useEffect(() => {
    document.title = title === undefined ? 'rushes' : `${title} · rushes`
  }, [title])
  return (
    <main class="centered">
      <Brand />
      {children !== undefined && (
        <div class="centered-card">
          {title !== undefined && (
            <h1 ref={heading} tabIndex={-1}>
              {title}
            </h1>
          )}
          {children}
        </div>
      )}
    </main>
  )
}
