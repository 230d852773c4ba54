# PROTOCOL.md: the process that runs an app's functions. Started by its absolute path, so that no file of the app can take the place of one of ours.
if __name__ == "__main__":  # multiprocessing's spawn imports this file again, under another name
    from inference_harness.main import main

    main()
