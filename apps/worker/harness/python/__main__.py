# PROTOCOL.md: the entry point of the harness. The keeper starts it by its absolute path, so that
# no file of the app can shadow its modules.
if __name__ == "__main__":  # multiprocessing's spawn imports this file again, under another name
    from inference_harness.main import main

    main()
