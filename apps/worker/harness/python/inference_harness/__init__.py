# One package, so that none of our module names can be met by an app's `import`.
